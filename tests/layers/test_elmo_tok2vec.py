"""Parts of a tok2vec around ELMo: word dropout, static vectors, and prediction in parts."""

import pickle

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.ml.models.tok2vec import CharacterEmbed
from spacy.tokens import Doc
from spacy.util import load_model_from_config
from spacy.vectors import Vectors
from spacy.vocab import Vocab
from thinc.api import Linear, Model, chain, with_array

from spacy_elmo import make_config
from spacy_elmo.layers import elmo_tok2vec as module
from spacy_elmo.layers import scalar_mix
from spacy_elmo.layers.elmo_layers import LAYERS_NAME
from spacy_elmo.layers.elmo_tok2vec import build_static_vectors_v1, in_parts
from spacy_elmo.layers.word_features import drop_words

from ..support.helpers import assert_close

VOCAB = Vocab()


@pytest.fixture
def few_tokens(monkeypatch):
    monkeypatch.setattr(scalar_mix, "PART_TOKENS", MOST)
    monkeypatch.setattr(module, "PART_TOKENS", MOST)


def make_texts(*texts):
    return [Doc(VOCAB, words=text.split()) for text in texts]


# Word dropout


def make_dropout(share=0.5):
    """Features are a word's length and 1; what comes back is kept."""
    returned = []

    def forward(model, docs, is_train):
        rows = [np.array([[len(t), 1] for t in doc], dtype="float32") for doc in docs]
        return [row.reshape(-1, 2) for row in rows], lambda dYs: returned.extend(dYs) or []

    return drop_words(Model("features", forward), share), returned


def is_dropped(Ys):
    return [[not row.any() for row in Y] for Y in Ys]


def test_whole_tokens_are_dropped_in_training_and_in_the_gradient():
    model, returned = make_dropout(0.3)
    docs = make_texts("", "green eggs " * 300, "ham " * 400)
    full = model.layers[0].predict(docs)

    Ys, backprop = model.begin_update(docs)
    assert backprop([np.ones_like(Y) for Y in Ys]) == []

    X, Y, dX = (np.concatenate(rows) for rows in (full, Ys, returned))
    dropped = (Y == 0).all(axis=1)
    assert 0.2 < dropped.mean() < 0.4
    np.testing.assert_array_equal(Y[~dropped], X[~dropped])
    assert (dX[~dropped] == 1).all() and (dX[dropped] == 0).all()
    assert [row.dtype for row in [*Ys, *returned]] == ["float32"] * 6
    assert [row.shape for row in returned] == [(0, 2), (600, 2), (400, 2)]


def test_words_never_trained_on_have_no_features():
    model, _ = make_dropout()
    docs = make_texts("green eggs", "ham Ham", "")
    assert is_dropped(model.predict(docs)) == [[True, True], [True, True], []]

    model.begin_update(make_texts("ham eggs"))
    assert is_dropped(model.predict(docs)) == [[True, False], [False, True], []]
    model.begin_update(make_texts("green", ""))
    assert is_dropped(model.predict(docs)) == [[False, False], [False, True], []]
    np.testing.assert_array_equal(model.predict(docs)[0], [[5, 1], [4, 1]])


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=4), max_size=4))
def test_what_was_trained_on_is_remembered_and_saved(batches):
    model, _ = make_dropout()
    for words in batches:
        model.begin_update(make_texts(" ".join(words)))
    loaded = make_dropout()[0].from_bytes(model.to_bytes())

    seen = {word for words in batches for word in words}
    expected = [[word not in seen for word in "abcdefgh"]]
    assert is_dropped(model.predict(make_texts("a b c d e f g h"))) == expected
    assert is_dropped(loaded.predict(make_texts("a b c d e f g h"))) == expected


def test_initialize_forgets_the_words():
    model, _ = make_dropout()
    model.begin_update(make_texts("ham"))
    model.initialize()

    assert is_dropped(model.predict(make_texts("ham"))) == [[True]]


# Static vectors


WORDS = [["a", "zzz", "b", "qqq"], [], ["b"], ["zzz"]]


@pytest.fixture
def static_docs():
    vocab = spacy.blank("en").vocab
    data = np.random.default_rng(0).standard_normal((3, 5), dtype="float32")
    vocab.vectors = Vectors(strings=vocab.strings, data=data, keys=["a", "b", "c"])
    return [Doc(vocab, words=words) for words in WORDS]


def test_words_without_a_vector_are_zeros(static_docs):
    model = build_static_vectors_v1(width=2)
    model.initialize(X=static_docs)

    Ys, _ = model(static_docs, True)

    assert [Y.shape for Y in Ys] == [(len(words), 2) for words in WORDS]
    for words, Y in zip(WORDS, Ys):
        assert [bool(row.any()) for row in Y] == [word in "ab" for word in words]


def test_a_pipeline_without_vectors_is_told(static_docs):
    model = build_static_vectors_v1(width=2)
    model.initialize(X=static_docs)
    others = [Doc(spacy.blank("en").vocab, words=words) for words in WORDS]
    for is_train in (False, True):
        with pytest.raises(ValueError, match="EL186.*nlp.vocab.vectors"):
            model(others, is_train)
    assert [Y.shape for Y in model.predict(others[1:2])] == [(0, 2)]


def test_gradients_match_finite_differences(static_docs):
    model = build_static_vectors_v1(width=2)
    model.initialize(X=static_docs)
    table = model.layers[0]
    rng = np.random.default_rng(1)
    dYs = [rng.standard_normal((len(doc), 2), dtype="float32") for doc in static_docs]

    _, backprop = model(static_docs, True)
    backprop([dY.copy() for dY in dYs])

    W, expected = table.get_param("W").copy(), np.zeros((2, 5))
    for i in np.ndindex(*W.shape):
        sums = []
        for step in (0.5, -0.5):  # the layer is linear in W
            changed = W.copy()
            changed[i] += step
            table.set_param("W", changed)
            sums.append(sum((Y * dY).sum() for Y, dY in zip(model.predict(static_docs), dYs)))
        expected[i] = sums[0] - sums[1]
    assert_close([table.get_grad("W")], [expected], atol=1e-4)
    assert np.abs(expected).max() > 0.1


# Parts


MOST = 10


def make_docs(lengths):
    return [Doc(VOCAB, words=["ham"] * n) for n in lengths]


def read_places(model, docs, is_train):
    """Each token's place, and how often the model was called."""
    model.attrs["calls"].append([len(doc) for doc in docs])
    rows = [np.arange(len(doc), dtype="float32").reshape(-1, 1) for doc in docs]
    return rows, lambda dYs: model.attrs["returned"].append(len(dYs)) or docs


def make_model(**attrs):
    return Model("places", read_places, attrs={"calls": [], "returned": [], **attrs})


@given(st.lists(st.integers(0, 2 * MOST)))
@pytest.mark.usefixtures("few_tokens")
def test_parts_are_bounded_and_lose_nothing(lengths):
    docs, whole, cut = make_docs(lengths), make_model(), in_parts(make_model())
    expected, found = whole.predict(docs), cut.predict(docs)

    assert [Y.tolist() for Y in found] == [Y.tolist() for Y in expected]
    calls = cut.attrs["calls"]
    # Several of spaCy's layers cannot read docs that have no token at all.
    read = [n for n in lengths if n] if sum(lengths) > MOST else lengths
    assert [n for call in calls for n in call] == read
    assert all(sum(call) <= MOST or len(call) == 1 for call in calls)


@pytest.mark.usefixtures("few_tokens")
def test_training_reads_all_docs_at_once():
    docs, model = make_docs([6, 7, 8]), in_parts(make_model())
    Ys, backprop = model.begin_update(docs)
    backprop(Ys)
    assert model.attrs["calls"] == [[6, 7, 8]] and model.attrs["returned"] == [3]


@pytest.mark.usefixtures("few_tokens")
def test_a_bilm_inside_reads_all_docs_at_once():
    """As behind `nlp.replace_listeners`."""
    inner = make_model()
    inner.name = LAYERS_NAME
    model = in_parts(chain(inner, with_array(Linear(2, 1))))
    model.initialize()
    model.predict(make_docs([6, 7, 8]))
    assert inner.attrs["calls"][-1] == [6, 7, 8]


@pytest.mark.usefixtures("few_tokens")
def test_a_preset_tags_the_same_in_parts_and_can_be_sent_to_a_process(monkeypatch):
    nlp = load_model_from_config(make_config("word_features", ["tagger"]), auto_fill=True)
    tagger = nlp.get_pipe("tagger")
    for label in ("A", "B", "C"):
        tagger.add_label(label)
    nlp.initialize()
    texts = ["Green eggs and ham.", "", "I do not like them, Sam-I-am.", "Ham", " ", "Sam " * 15]
    docs = [nlp.get_pipe("elmo")(nlp.make_doc(text)) for text in texts]
    found = tagger.model.predict(docs)
    again = pickle.loads(pickle.dumps(tagger.model._func)) and tagger.model.copy().predict(docs)
    monkeypatch.setattr(scalar_mix, "PART_TOKENS", 10_000)
    for one, other, whole in zip(found, again, tagger.model.predict(docs), strict=True):
        np.testing.assert_allclose(one, whole, atol=1e-5)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("lengths", [[0, MOST + 1], [MOST + 1, 0, 0]])
@pytest.mark.usefixtures("few_tokens")
def test_layers_that_cannot_read_nothing_get_no_part_of_empty_docs(lengths):
    model = in_parts(CharacterEmbed(width=4, rows=20, nM=2, nC=3, include_static_vectors=False))
    docs = make_docs(lengths)
    model.initialize(docs)
    assert [Y.shape for Y in model.predict(docs)] == [(n, 4) for n in lengths]
