"""Make this folder: a pipeline as version 0.1.0 saved it, and what it said.

Run with that version installed, from the root of its source tree (commit 14e46d6):
`python -m tests.data.pipeline_0_1_0.make OUTPUT`. Never made anew: it stands for what users
have on their disks.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import spacy
import srsly
import torch
from spacy.tokens import Doc, DocBin
from spacy.training import Example

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.native import write_native
from spacy_elmo.language_model.loading import collect_softmax
from spacy_elmo.language_model.softmax import make_softmax
from spacy_elmo.layers.elmo_layers import get_embedder
from spacy_elmo.senses.annotated import read_sentences
from spacy_elmo.senses.inventory import read_wordnet
from spacy_elmo.senses.sense_model import SenseModel
from spacy_elmo.senses.sense_training import train_senses
from tests.support.toy_wordnet import make_lines, write_wordnet

SHAPE = {
    "width": 8,
    "depth": 2,
    "cell_width": 6,
    "char_width": 3,
    "filters": [[1, 3], [2, 4]],
    "n_highway": 1,
    "max_chars": 14,
}
STOCK = {"@architectures": "spacy.Tok2VecListener.v1", "width": 8, "upstream": "elmo"}
LISTENER = {
    "@architectures": "spacy-elmo.ElmoListener.v1",
    "upstream": "elmo",
    "width": 8,
    "depth": 2,
}
TOK2VEC = {
    "@architectures": "spacy-elmo.ElmoTok2Vec.v1",
    "embed": {
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": 6,
        "attrs": ["NORM", "SHAPE"],
        "rows": [50, 50],
        "include_static_vectors": False,
    },
    "encode": {
        "@architectures": "spacy.MaxoutWindowEncoder.v2",
        "width": 6,
        "depth": 1,
        "window_size": 1,
        "maxout_pieces": 2,
    },
    "input": LISTENER,
    "output": LISTENER,
    "word_dropout": 0.5,
}
TASKS = {"tagger": STOCK, "ner": LISTENER, "morphologizer": TOK2VEC}
POS = {"P": "PRON", "V": "VERB", "A": "ADJ", "N": "NOUN", "D": "DET", "I": "ADP", ".": "PUNCT"}
SENTENCES = [
    (["I", "like", "green", "eggs"], ["P", "V", "A", "N"]),
    (["Eat", "ham"], ["V", "N"]),
    (["the", "river", "bank", "in", "green", "."], ["D", "N", "N", "I", "A", "."]),
    (["my", "money", "bank", "is", "blue", "."], ["D", "N", "N", "V", "A", "."]),
]
TEXTS = [
    "I like green eggs .",
    "",
    "  Eat ham \n \n and eggs",
    "the river bank in green . my money banks in green . I like the bank .",
    "Ünsäglich langewörter ohneende in 北京 .",
]
WORDS = ["<S>", "</S>", "<UNK>", "eggs", "ham", "I", "like", ".", "and", "green", "bank"]


def make_examples(nlp):
    for words, tags in SENTENCES:
        ents = ["B-FOOD" if word in ("eggs", "ham") else "O" for word in words]
        morphs = [f"Kind={tag}" if tag.isalpha() else "" for tag in tags]
        pos = [POS[tag] for tag in tags]
        gold = Doc(nlp.vocab, words=words, tags=tags, ents=ents, morphs=morphs, pos=pos)
        yield Example(Doc(nlp.vocab, words=words), gold)


def add_language_model(nlp, folder):
    torch.manual_seed(0)
    bilm = BiLM(BiLMConfig(**SHAPE))
    softmax = make_softmax("sampled", 4, len(WORDS), n_samples=3)
    torch.nn.init.normal_(softmax.weight)
    stored = collect_softmax(softmax, "sampled", {"n_samples": 3}, WORDS)
    write_native(bilm, folder / "language_model", softmax=stored)
    nlp.add_pipe("elmo_lm").from_disk(folder)


def add_senses(nlp, folder):
    srsly.write_jsonl(folder / "senses.jsonl", make_lines())
    inventory = read_wordnet(write_wordnet(folder / "dict"))
    embedder = get_embedder(nlp.get_pipe("elmo").model)
    centroids, _ = train_senses(embedder, inventory, read_sentences(folder / "senses.jsonl"))
    nlp.add_pipe("elmo_senses").model = SenseModel(inventory, centroids)


def make_pipeline(folder):
    spacy.util.fix_random_seed(0)
    # This language has the smallest tokenizer.
    nlp = spacy.blank("xx")
    model = {"@architectures": "spacy-elmo.Elmo.v1", "frozen": False, **SHAPE}
    nlp.add_pipe("elmo", config={"model": model, "store_layers": True})
    for name, block in TASKS.items():
        default = nlp.get_factory_meta(name).default_config["model"]
        model = {**default, "tok2vec": block}
        if name == "ner":
            model["hidden_width"] = 8
        nlp.add_pipe(name, config={"model": model})
    nlp.config["initialize"]["components"] = {
        "elmo": {"loader": {"@misc": "spacy-elmo.RandomLoader.v1"}}
    }
    examples = list(make_examples(nlp))
    optimizer = nlp.initialize(lambda: examples)
    nlp.config["initialize"]["components"] = {}
    optimizer.learn_rate = 0.03
    for _ in range(40):
        nlp.update(examples, sgd=optimizer)
    add_language_model(nlp, folder)
    add_senses(nlp, folder)
    return nlp


def read_docs(docs):
    """What the components say: arrays, and the rest in JSON's types."""
    arrays, rest = {}, []
    for i, doc in enumerate(docs):
        entry, lm = doc._.elmo["elmo"], doc._.elmo_lm
        found = {"tensor": doc.tensor, "mix": entry["mix"], "layers": entry["layers"]}
        found.update({key: lm[key] for key in ("forward", "backward", "hidden")})
        found["surprisal"] = np.array([token._.elmo_surprisal for token in doc])
        arrays.update({f"{i}.{key}": array.astype("float32") for key, array in found.items()})
        ents = [[ent.start, ent.end, ent.label_] for ent in doc.ents]
        tokens = [[t.text, t.tag_, str(t.morph), t._.sense, t._.sense_gloss] for t in doc]
        rest.append({"ents": ents, "tokens": tokens})
    return arrays, rest


def main(output):
    with TemporaryDirectory() as folder:
        nlp = make_pipeline(Path(folder))
    output.mkdir(parents=True, exist_ok=True)
    nlp.to_disk(output / "pipeline")
    (output / "pipeline.bytes").write_bytes(nlp.to_bytes())
    docs = list(nlp.pipe(TEXTS))
    DocBin(docs=docs, store_user_data=True).to_disk(output / "docs.spacy")
    arrays, rest = read_docs(docs)
    np.savez_compressed(output / "expected.npz", **arrays)
    srsly.write_json(output / "expected.json", rest)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
