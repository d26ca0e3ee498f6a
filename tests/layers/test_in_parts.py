"""Docs that are read some at a time in prediction."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.ml.models.tok2vec import CharacterEmbed
from spacy.tokens import Doc
from spacy.util import load_model_from_config
from spacy.vocab import Vocab
from thinc.api import Linear, Model, chain, get_current_ops, with_array

from spacy_elmo import make_config
from spacy_elmo.layers import scalar_mix as module
from spacy_elmo.layers.elmo_layers import LAYERS_NAME
from spacy_elmo.layers.scalar_mix import in_parts, predict_in_parts

VOCAB = Vocab()
MOST = 10


@pytest.fixture(autouse=True)
def few_tokens(monkeypatch):
    monkeypatch.setattr(module, "PART_TOKENS", MOST)


def make_docs(lengths):
    return [Doc(VOCAB, words=["ham"] * n) for n in lengths]


def read_places(model, docs, is_train):
    """Each token's place, and how often the model was called."""
    model.attrs["calls"].append([len(doc) for doc in docs])
    rows = [np.arange(len(doc), dtype="float32").reshape(-1, 1) for doc in docs]
    return rows, lambda dYs: model.attrs["returned"].append(len(dYs)) or docs


def make_model(**attrs):
    return Model("places", read_places, attrs={"calls": [], "returned": [], **attrs})


@settings(deadline=None)
@given(st.lists(st.integers(0, 2 * MOST)))
def test_parts_are_bounded_and_lose_nothing(lengths):
    docs, whole, cut = make_docs(lengths), make_model(), in_parts(make_model())
    expected, found = whole.predict(docs), cut.predict(docs)

    assert [Y.tolist() for Y in found] == [Y.tolist() for Y in expected]
    calls = cut.attrs["calls"]
    # Several of spaCy's layers cannot read docs that have no token at all.
    read = [n for n in lengths if n] if sum(lengths) > MOST else lengths
    assert [n for call in calls for n in call] == read
    assert all(sum(call) <= MOST or len(call) == 1 for call in calls)


def test_training_reads_all_docs_at_once():
    docs, model = make_docs([6, 7, 8]), in_parts(make_model())
    Ys, backprop = model.begin_update(docs)
    backprop(Ys)
    assert model.attrs["calls"] == [[6, 7, 8]] and model.attrs["returned"] == [3]


def test_a_bilm_inside_reads_all_docs_at_once():
    """As behind `nlp.replace_listeners`."""
    inner = make_model()
    inner.name = LAYERS_NAME
    model = in_parts(chain(inner, with_array(Linear(2, 1))))
    model.initialize()
    model.predict(make_docs([6, 7, 8]))
    assert inner.attrs["calls"][-1] == [6, 7, 8]


def test_a_gpu_reads_all_docs_at_once():
    model = in_parts(make_model())
    # Any other ops than NumPy's.
    model.ops = type("OtherOps", (), {"xp": np})()
    model.predict(make_docs([6, 7, 8]))
    assert model.attrs["calls"] == [[6, 7, 8]]


def test_arrays_are_mapped_in_parts():
    ops = get_current_ops()
    mapped = with_array(Linear(2, 1))
    mapped.initialize()
    Xs = [ops.alloc2f(n, 1) + n for n in (0, 4, 7, 25, 1)]
    for one, other in zip(predict_in_parts(mapped, Xs), mapped.predict(Xs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


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
    monkeypatch.setattr(module, "PART_TOKENS", 10_000)
    for one, other, whole in zip(found, again, tagger.model.predict(docs), strict=True):
        np.testing.assert_allclose(one, whole, atol=1e-5)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("lengths", [[0, MOST + 1], [MOST + 1, 0, 0]])
def test_layers_that_cannot_read_nothing_get_no_part_of_empty_docs(lengths):
    model = in_parts(CharacterEmbed(width=4, rows=20, nM=2, nC=3, include_static_vectors=False))
    docs = make_docs(lengths)
    model.initialize(docs)
    assert [Y.shape for Y in model.predict(docs)] == [(n, 4) for n in lengths]
