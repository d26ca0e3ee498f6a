"""The network of elmo_srl: clauses, gradients, gold tags, decoding."""

from itertools import product

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed

from spacy_elmo.tasks.srl.network import Clause, RoleEncoder, build_srl_tagger_v1, make_clauses
from spacy_elmo.tasks.srl.tags import (
    UNKNOWN,
    GoldFrame,
    decode_roles,
    find_gold,
    make_tags,
    read_roles,
)

from ..support.helpers import assert_close, assert_gradient
from ..support.toy_tasks import HASHED, make_role_doc

VOCAB = spacy.blank("en").vocab


def make(n_tokens, starts=None):
    flags = None if starts is None else [i in starts for i in range(n_tokens)]
    return Doc(VOCAB, words=["a"] * n_tokens, sent_starts=flags)


def test_a_predicate_has_its_sentence():
    docs = [make(7, [0, 3]), make(0), make(4, [0])]
    clauses = make_clauses(docs, [[(1, 2), (3, 4), (6, 7)], [], [(0, 1)]], 100)

    assert [c[:3] for c in clauses] == [(0, 0, 3), (0, 3, 7), (0, 3, 7), (2, 0, 4)]


def test_long_sentences_and_docs_without_sentences_are_cut():
    for doc in (make(10), make(10, [0])):
        clauses = make_clauses([doc], [[(i, i + 1) for i in range(10)]], 4)
        assert all(c.start <= c.predicate[0] < c.end and c.n_tokens <= 4 for c in clauses)
    # Where there are no sentence starts, the punctuation of the text decides.
    doc = Doc(VOCAB, words=[*"abc.defg"])
    assert make_clauses([doc], [[(5, 6)]], 6)[0][1:3] == (4, 8)


SENTENCES = ["He eats ham .", "", "Ann makes the ham that Bob eats today .", "No"]
PLACES = [[(1, 2)], [], [(1, 2), (6, 7)], [(0, 1)]]
# O, B and I of the predicate, and of two roles.
N_TAGS = 7


def make_docs(texts=SENTENCES):
    return [Doc(VOCAB, words=text.split()) for text in texts]


def make_model(seed=0, **settings):
    fix_random_seed(seed)
    settings = {"width": 6, "depth": 3, "dropout": 0.0, **settings}
    tok2vec = spacy.registry.resolve({"model": HASHED})["model"]
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
    assert_gradient(get_sum, rows, captured[0], eps=1e-3, atol=0.01, every=29)


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


NUMBERS = {"A0": 0, "A1": 1}


def make_gold(n_tokens, predicate, **arguments):
    doc = make(n_tokens)
    return GoldFrame(predicate, [Span(doc, *place, label=k) for k, place in arguments.items()], [])


def test_tags_are_bio_and_read_back():
    gold = make_gold(9, (3, 5), A0=(1, 3), A1=(5, 6))
    clause = Clause(0, 1, 8, (3, 5))
    tags = make_tags(clause, gold, NUMBERS)

    assert tags.tolist() == [3, 4, 1, 2, 5, 0, 0]
    assert read_roles(tags.tolist(), clause, [*NUMBERS]) == [
        (1, 3, "A0"), (3, 5, "V"), (5, 6, "A1"),
    ]  # fmt: skip
    # Two of one role, side by side.
    assert read_roles([3, 3, 4, 1], Clause(0, 0, 4, (3, 4)), [*NUMBERS])[:2] == [
        (0, 1, "A0"), (1, 3, "A0"),
    ]  # fmt: skip


def test_unknown_roles_and_arguments_outside_of_the_clause_are_warnings():
    gold = make_gold(4, (1, 2), A0=(0, 1), A9=(2, 4))
    with pytest.warns(UserWarning, match="WL034.*'A9'"):
        tags = make_tags(Clause(0, 0, 4, (1, 2)), gold, NUMBERS)
    assert tags.tolist() == [3, 1, UNKNOWN, UNKNOWN]
    gold = make_gold(9, (3, 4), A0=(0, 3), A1=(6, 9))
    with pytest.warns(UserWarning, match="WL034.*outside"):
        tags = make_tags(Clause(0, 2, 6, (3, 4)), gold, NUMBERS)
    assert tags.tolist() == [UNKNOWN, 1, 0, 0]


@pytest.mark.parametrize(
    "arguments, kept",
    [
        ({"A0": (2, 4), "A1": (3, 7)}, [(3, 7)]),
        ({"A0": (0, 2), "A1": (3, 4)}, [(3, 4)]),
        ({"A0": (0, 3), "A1": (2, 4)}, [(2, 4)]),
    ],
    ids=["the longest", "over the predicate", "over the predicate and the other"],
)
def test_overlapping_arguments_are_a_warning(arguments, kept):
    doc = make_role_doc(VOCAB, "a b c d e f g", {"V": (1, 2), **arguments})
    with pytest.warns(UserWarning, match="WL034"):
        (frame,) = find_gold(Example(Doc(VOCAB, words=[*"abcdefg"]), doc)).frames
    assert [(span.start, span.end) for span in frame.arguments] == kept


def test_gold_is_in_the_tokens_of_the_predicted_doc():
    doc = make_role_doc(
        VOCAB, "He do n't eat green-eggs and ham",
        {"V": (1, 2), "NEG": (2, 3)}, {"V": (3, 4), "A0": (0, 1), "A1": (4, 7)},
    )  # fmt: skip
    words = ["He", "don't", "eat", "green", "-", "eggs", "and", "ham"]
    predicted = Doc(VOCAB, words=words)
    with pytest.warns(UserWarning, match="WL039.*gold_preproc"):
        gold = find_gold(Example(predicted, doc))

    # "do" is inside of a token, and its frame is left out.
    assert gold.predicates == [2] and gold.unknown == [1]
    (frame,) = gold.frames
    assert frame.predicate == (2, 3)
    assert [(s.start, s.end, s.label_) for s in frame.arguments] == [(0, 1, "A0"), (3, 8, "A1")]


def is_bio(tags, clause, fixed):
    start, end = (place - clause.start for place in clause.predicate)
    if any(
        tag > 0 and tag % 2 == 0 and before not in (tag, tag - 1)
        for before, tag in zip([0, *tags], tags)
    ):
        return False  # fmt: skip
    if [i for i, tag in enumerate(tags) if tag == 1] != [start]:
        return False
    verb = [i for i, tag in enumerate(tags) if tag in (1, 2)]
    return not fixed or verb == list(range(start, end))


def decode_by_trying(scores, clause, fixed):
    every = (t for t in product(range(N_TAGS), repeat=len(scores)) if is_bio(t, clause, fixed))
    return max(every, key=lambda tags: sum(scores[i, tag] for i, tag in enumerate(tags)))


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize(
    "n_tokens, predicate", [(1, (0, 1)), (4, (1, 3)), (4, (3, 4)), (5, (0, 2))]
)
def test_decoding_finds_the_best_tags(n_tokens, predicate, fixed):
    rng = np.random.default_rng(n_tokens)
    clauses = [Clause(0, 2, 2 + n_tokens, (predicate[0] + 2, predicate[1] + 2))] * 5
    scores = [3 * rng.standard_normal((n_tokens, N_TAGS)).astype("float32") for _ in clauses]
    decoded = decode_roles(scores, clauses, fixed)

    for each, clause, tags in zip(scores, clauses, decoded):
        assert tuple(tags) == decode_by_trying(each, clause, fixed)
