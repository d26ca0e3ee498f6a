"""The model: gradients, batches, orders."""

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc
from spacy.util import fix_random_seed
from thinc.api import Model

from spacy_elmo.tasks.srl.network import Clause, RoleEncoder, build_srl_tagger_v1

from ...support.helpers import assert_close
from ...support.toy_roles import PLAIN

VOCAB = spacy.blank("en").vocab
SENTENCES = ["He eats ham .", "", "Ann makes the ham that Bob eats today .", "No"]
PLACES = [[(1, 2)], [], [(1, 2), (6, 7)], [(0, 1)]]
N_TAGS = 7


def make_docs(texts=SENTENCES):
    return [Doc(VOCAB, words=text.split()) for text in texts]


def make_model(seed=0, **settings):
    fix_random_seed(seed)
    settings = {"width": 6, "depth": 3, "dropout": 0.0, **settings}
    tok2vec = spacy.registry.resolve({"model": PLAIN})["model"]
    model = build_srl_tagger_v1(tok2vec, **settings)
    model.initialize(X=make_docs(), Y=np.zeros((1, N_TAGS), "float32"))
    output = model.layers[3]
    weights = np.random.default_rng(seed).standard_normal((N_TAGS, settings["width"]))
    output.set_param("W", weights.astype("float32"))
    return model


@pytest.fixture
def model():
    return make_model()


def predict(model, docs, places):
    return model.predict((docs, lambda _: places))


def test_scores_have_shapes(model):
    scores = predict(model, make_docs(), PLACES)

    assert [each.shape for each in scores.predicates] == [(4,), (0,), (9,), (1,)]
    assert [clause.doc for clause in scores.clauses] == [0, 2, 2, 3]
    assert [each.shape for each in scores.tags] == [(n, N_TAGS) for n in (4, 9, 9, 1)]
    # The two predicates of one sentence are told apart.
    assert np.abs(scores.tags[1] - scores.tags[2]).max() > 0.01


def test_a_tok2vec_need_not_say_how_wide_it_is():
    def forward(model, docs, is_train):
        return [model.ops.alloc2f(len(doc), 5) for doc in docs], lambda d_rows: docs

    model = build_srl_tagger_v1(Model("mine", forward), width=6, depth=1)
    model.initialize(X=make_docs(), Y=np.zeros((1, N_TAGS), "float32"))

    assert predict(model, make_docs(), PLACES).tags[0].shape == (4, N_TAGS)


@pytest.mark.parametrize("places", [PLACES, [[], [], [], []]], ids=["some", "none"])
def test_gradients_are_those_of_finite_differences(model, places):
    docs = make_docs()
    rng = np.random.default_rng(0)
    scores, backprop = model.begin_update((docs, lambda _: places))
    d_predicates = [rng.standard_normal(each.shape).astype("float32") for each in scores.predicates]
    d_tags = [rng.standard_normal(each.shape).astype("float32") for each in scores.tags]
    rows, captured = model.layers[0].predict(docs), []
    model.layers[0]._func = lambda *_, is_train: (rows, captured.append)
    scores, backprop = model.begin_update((docs, lambda _: places))
    backprop((d_predicates, d_tags))

    def get_sum():
        scores = predict(model, docs, places)
        pairs = [*zip(scores.predicates, d_predicates), *zip(scores.tags, d_tags)]
        return sum((np.float64(a) * b).sum() for a, b in pairs)

    # Small, because Maxout has corners.
    eps = 1e-3
    for X, dX in zip(rows, captured[0]):
        for place in list(np.ndindex(X.shape))[::29]:
            value, sums = X[place], []
            for sign in (1, -1):
                X[place] = value + sign * eps
                sums.append(get_sum())
            X[place] = value
            np.testing.assert_allclose(dX[place], (sums[0] - sums[1]) / (2 * eps), atol=0.01)


@pytest.mark.parametrize("skip_width", [0, 2])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_encoder_is_lstms_of_alternating_directions(depth, skip_width):
    """Each clause alone, without packing."""
    torch.manual_seed(0)
    encoder = RoleEncoder(5, skip_width, width=6, depth=depth)
    X = torch.randn(9, 5)
    rows, marks, sizes = np.array([2, 3, 4, 8, 2, 3, 4]), np.array([0, 1, 0, 1, 0, 0, 1]), [3, 1, 3]
    Y = encoder(X, [9], rows, marks, sizes)

    start = 0
    for size in sizes:
        part = slice(start, start + size)
        H = encoder.project(X[rows[part], : 5 - skip_width])
        H = H + encoder.indicator(torch.from_numpy(marks[part]))
        for i, (lstm, gate) in enumerate(zip(encoder.lstms, encoder.gates)):
            read = H.flip(0) if i % 2 else H
            out = lstm(read)[0].flip(0) if i % 2 else lstm(read)[0]
            carried = torch.sigmoid(gate(H))
            H = (1 - carried) * out + carried * H
        expected = torch.cat([H, X[rows[part], 5 - skip_width :]], 1)
        torch.testing.assert_close(Y[part], expected, atol=1e-6, rtol=0)
        start += size


def test_dropout_is_for_training_alone_and_one_mask_for_a_clause():
    model = make_model(dropout=0.5)
    assert_close(*[predict(model, make_docs(), PLACES).tags for _ in range(2)], atol=0)

    encoder, rows = model.layers[2], [np.ones((4, 16), "float32")]
    Y, _ = encoder((rows, [Clause(0, 0, 4, (1, 2))]), True)
    dropped = Y == 0
    assert dropped.any() and not dropped.all()
    assert (dropped == dropped[0]).all()
