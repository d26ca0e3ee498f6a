"""Small pipelines under the names of published ones, which no test can download."""

import numpy as np
import spacy
from spacy.training import Example
from spacy.vectors import Vectors

SENTENCES = [
    ("Sam likes green eggs", ["NNP", "VBZ", "JJ", "NNS"], [(0, 3, "PERSON")]),
    ("Ann sat by the bank in London", ["NNP", "VBD", "IN", "DT", "NN", "IN", "NNP"], [
        (0, 3, "PERSON"), (23, 29, "GPE"),
    ]),
]  # fmt: skip


def write_trained_pipeline(path):
    """As en_core_web_sm: a tok2vec of its own, which a tagger and an ner listen to."""
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": {"width": 16, "depth": 1}})
    for name in ("tagger", "ner"):
        model = {**nlp.get_factory_meta(name).default_config["model"]}
        model["tok2vec"] = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16}
        nlp.add_pipe(name, config={"model": model})
    examples = [
        Example.from_dict(nlp.make_doc(text), {"tags": tags, "entities": entities})
        for text, tags, entities in SENTENCES
    ]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(20):
        nlp.update(examples, sgd=optimizer)
    nlp.meta["name"] = "core_web_sm"
    nlp.to_disk(path)


def write_vectors_pipeline(path):
    """As en_core_web_md, as far as its static vectors go."""
    nlp = spacy.blank("en")
    words = sorted({word for text, _, _ in SENTENCES for word in text.split()})
    data = np.random.default_rng(0).normal(size=(len(words), 12)).astype("f")
    nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=data, keys=words)
    nlp.to_disk(path)
