"""Docs that `Span.as_doc` makes, as for the entity linker: their layers are those of the doc."""

import gc
import pickle

import numpy as np
import pytest
from spacy.kb import InMemoryLookupKB
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_elmo import make_config
from spacy_elmo.layers import doc_data as live_mixes
from spacy_elmo.layers.doc_data import read_layers

from ..support.helpers import make_nlp
from ..support.pipelines import build

TEXT = "I like green eggs and ham ."


@pytest.fixture
def nlp():
    nlp = make_nlp()
    nlp.get_pipe("elmo").store_layers = True
    return nlp


def test_a_part_has_the_layers_of_its_tokens(nlp):
    doc = nlp(TEXT)
    layers = read_layers(doc, "elmo")
    for start, end in ((0, 7), (2, 5), (6, 7), (3, 3)):
        part = doc[start:end].as_doc()
        np.testing.assert_array_equal(read_layers(part, "elmo"), layers[start:end])
        assert read_layers(part, "other") is None
    smaller = doc[2:6].as_doc()[1:3].as_doc()
    np.testing.assert_array_equal(read_layers(smaller, "elmo"), layers[3:5])
    np.testing.assert_array_equal(smaller[1]._.elmo_layers, layers[4])


def test_a_tensor_of_another_has_no_layers(nlp):
    for change in (np.array, lambda tensor: tensor[::-1]):
        part = nlp(TEXT)[1:4].as_doc()
        part.tensor = change(part.tensor)
        assert read_layers(part, "elmo") is None
    other = pickle.loads(pickle.dumps(nlp(TEXT)[1:4].as_doc()))
    assert read_layers(other, "elmo") is None


def test_layers_go_with_their_mix(nlp):
    gc.collect()
    before = len(live_mixes._made)
    parts = [doc[1:3].as_doc() for doc in nlp.pipe([TEXT] * 5)]
    assert len(live_mixes._made) == before + 5
    del parts
    gc.collect()
    assert len(live_mixes._made) == before


CONTEXTS = [
    ("Mercury is a small planet near the sun", "Q1"),
    ("The planet Mercury orbits the sun", "Q1"),
    ("Mercury is a toxic liquid metal", "Q2"),
    ("They poured Mercury into a thermometer", "Q2"),
]


def make_mention(nlp, text, kb_id=""):
    words = text.split()
    doc = Doc(nlp.vocab, words=words, sent_starts=[True] + [False] * (len(words) - 1))
    i = words.index("Mercury")
    doc.ents = [Span(doc, i, i + 1, label="X", kb_id=kb_id)]
    return doc


def make_kb(vocab):
    kb = InMemoryLookupKB(vocab, entity_vector_length=8)
    for i, name in enumerate(("Q1", "Q2")):
        kb.add_entity(name, 10, np.random.default_rng(i).standard_normal(8).astype("f"))
    kb.add_alias("Mercury", ["Q1", "Q2"], [0.5, 0.5])
    return kb


@pytest.mark.parametrize("preset", ["shared_mix", "task_mix", "word_features"])
def test_an_entity_linker_predicts_from_what_it_has_learned_from(preset):
    config = make_config(preset, ["entity_linker"])
    config["components"]["entity_linker"]["incl_prior"] = False
    nlp = build(config)
    linker = nlp.get_pipe("entity_linker")
    linker.set_kb(make_kb)
    examples = [Example(make_mention(nlp, t), make_mention(nlp, t, k)) for t, k in CONTEXTS]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(40):
        nlp.update(examples, sgd=optimizer, drop=0.0)
    docs = nlp.pipe([make_mention(nlp, text) for text, _ in CONTEXTS])
    assert [doc.ents[0].kb_id_ for doc in docs] == [kb_id for _, kb_id in CONTEXTS]
