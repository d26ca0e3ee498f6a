"""What the rows of benchmarks/rivals start from, tiny and random."""

from importlib.util import find_spec

import numpy as np
import spacy
from spacy.tokens import DocBin
from spacy.vectors import Vectors

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.native import write_native

from .helpers import SHAPE
from .toy_bert import write_bert
from .toy_corpora import make_docs

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "w", *(f"##{i}" for i in range(10))]


def write_corpora(folder):
    """Data sets of both kinds: tags, and the same docs with the odd words as entities."""
    for task in ("ewt", "wnut17"):
        (folder / task).mkdir(parents=True)
        for i, split in enumerate(("train", "dev", "test")):
            docs = list(make_docs(40, i))
            for doc in docs:
                spans = [
                    doc.char_span(t.idx, t.idx + len(t), "odd") for t in doc if t.tag_ == "odd"
                ]
                doc.ents = spans
            DocBin(docs=docs).to_disk(folder / task / f"{split}.spacy")
    return folder


def write_vectors(folder, floret=False):
    """A pipeline with vectors of the toy words."""
    nlp = spacy.blank("en")
    data = np.random.default_rng(0).normal(size=(20, 4)).astype("float32")
    if floret:
        settings = {"mode": "floret", "hash_count": 2, "minn": 1, "maxn": 2}
        nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=data, **settings)
    else:
        keys = [f"w{i}" for i in range(20)]
        nlp.vocab.vectors = Vectors(strings=nlp.vocab.strings, data=data, keys=keys)
    nlp.to_disk(folder)


def write_bilm(folder):
    """A tiny random biLM."""
    write_native(BiLM(BiLMConfig(**SHAPE)), folder)


def write_transformer(folder):
    """A BERT of six layers."""
    settings = {"hidden_size": 8, "num_hidden_layers": 6, "max_position_embeddings": 140}
    return write_bert(folder, PIECES, **settings)


def has(*packages):
    """Whether packages are installed."""
    return all(find_spec(package) for package in packages)
