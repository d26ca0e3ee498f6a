"""Pipelines of every component and preset in their default, minimal configs, as users make them:
with the bundled biLM."""

import numpy as np
import spacy
import srsly
from spacy.tokens import Doc, Token
from spacy.training import Example
from spacy.vectors import Vectors
from thinc.api import Config

from spacy_elmo.layers.elmo_layers import get_embedder
from spacy_elmo.pipeline.presets import PRESETS, STATIC_VECTORS, make_config
from spacy_elmo.senses.annotated import read_sentences
from spacy_elmo.senses.sense_model import SenseModel
from spacy_elmo.senses.sense_training import train_senses
from spacy_elmo.senses.wordnet import read_wordnet

from .toy_wordnet import make_lines, write_wordnet

TEXTS = ["The river bank in green .", "", "My money bank \n in green !"]
MINIMAL = """
[nlp]
lang = "en"
pipeline = {names}

[components]
"""


def make_minimal(*names):
    """A config that names factories alone."""
    blocks = "".join(f'\n[components.{name}]\nfactory = "{name}"\n' for name in names)
    return MINIMAL.format(names=list(names)).replace("'", '"') + blocks


def build(config):
    return spacy.util.load_model_from_config(config, auto_fill=True)


def make_components(*names):
    """A pipeline of components that need no training."""
    nlp = build(Config().from_str(make_minimal(*names)))
    nlp.initialize()
    return nlp


def make_senses(folder):
    """A pipeline with senses. The folder gets what they are trained on."""
    srsly.write_jsonl(folder / "senses.jsonl", make_lines())
    config = Config().from_str(make_minimal("elmo", "elmo_senses"))
    config["components"]["elmo"]["store_layers"] = True
    nlp = build(config)
    inventory = read_wordnet(write_wordnet(folder / "dict"))
    embedder = get_embedder(nlp.get_pipe("elmo").model)
    centroids, _ = train_senses(embedder, inventory, read_sentences(folder / "senses.jsonl"))
    nlp.get_pipe("elmo_senses").model = SenseModel(inventory, centroids)
    return nlp


def add_vectors(nlp):
    """A small table of static vectors."""
    nlp.vocab.vectors = Vectors(shape=(3, 4))
    for i, word in enumerate(("river", "bank", "ham")):
        nlp.vocab.set_vector(word, np.arange(i, i + 4, dtype="float32"))


def make_preset(preset):
    """A pipeline with a tagger and an entity recogniser, after two updates."""
    loader = {"@misc": "spacy-elmo.BundledLoader.v1"} if preset == "allennlp" else None
    nlp = build(make_config(preset, ["tagger", "ner"], loader=loader))
    if preset == STATIC_VECTORS:
        add_vectors(nlp)
    words, tags = ["the", "river", "bank", "in", "green", "."], ["D", "N", "N", "I", "A", "."]
    ents = ["O", "B-X", "I-X", "O", "O", "O"]
    gold = Doc(nlp.vocab, words=words, tags=tags, ents=ents, sent_starts=[1, 0, 0, 0, 0, 0])
    examples = [Example(nlp.make_doc(gold.text), gold)]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(2):
        nlp.update(examples, sgd=optimizer, annotates=["sentencizer"])
    return nlp


def make_pipeline(name, folder):
    """A pipeline by the name of a component or preset."""
    if name in PRESETS:
        return make_preset(name)
    return make_senses(folder) if name == "elmo_senses" else make_components(name)


def read(docs):
    """All that components say: arrays, and the rest."""
    arrays, rest = [], []
    for doc in docs:
        arrays += [doc.tensor, *[entry["mix"] for entry in (doc._.elmo or {}).values()]]
        lm = doc._.elmo_lm or {}
        arrays += [lm[key] for key in ("forward", "backward", "hidden") if key in lm]
        has_senses = Token.has_extension("sense")
        senses = [token._.sense if has_senses else None for token in doc]
        rest += [[t.text, t.tag_, t.ent_type_, sense] for t, sense in zip(doc, senses)]
    return arrays, rest


def assert_same(docs, expected, atol=1e-5):
    (arrays, rest), (other_arrays, other_rest) = read(docs), read(expected)
    assert rest == other_rest and len(arrays) == len(other_arrays) > 0
    for array, other in zip(arrays, other_arrays):
        np.testing.assert_allclose(array, other, atol=atol, rtol=0)
