"""Tasks small enough to be learned in seconds, over a tiny random biLM."""

import random

import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import fix_random_seed

from spacy_elmo.tasks.entailment.readers import PAIR_NAMES
from spacy_elmo.tasks.qa.network import PAIR_NAMES as QA_NAMES
from spacy_elmo.tasks.shared.corpora import copy_spans
from spacy_elmo.tasks.srl.frames import Frame, read_frames, write_frames

from ..acceptance import toys
from .helpers import SHAPE, make_nlp

HASHED = {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "width": 16,
    "depth": 1,
    "embed_size": 100,
    "window_size": 1,
    "maxout_pieces": 2,
    "subword_features": False,
    "pretrained_vectors": None,
}
LISTENER = {
    "@architectures": "spacy-elmo.ElmoListener.v2",
    "upstream": "elmo",
    "width": SHAPE["width"],
    "depth": SHAPE["depth"],
    # At the high learning rate of these tests a mix of layers would jump about.
    "output": "all",
}
ENCODED = {
    "@architectures": "spacy-elmo.ElmoTok2Vec.v2",
    "input": LISTENER,
    "encode": {"@architectures": "spacy-elmo.BiLSTMEncoder.v1", "width": 12},
}
ESIM = {"@architectures": "spacy-elmo.EntailmentESIM.v2", "width": 12, "dropout": 0.0}
BCN = {"@architectures": "spacy-elmo.TextCatBCN.v1", "width": 12, "dropout": 0.0}
QA = {"@architectures": "spacy-elmo.QABiDAF.v2", "width": 12, "dropout": 0.0}
RANKER = {"@architectures": "spacy-elmo.CorefSpanRanker.v2", "width": 12, "dropout": 0.0}
RANKER.update({"max_span": 2, "share": 1.0, "n_antecedents": 8})
TAGGER = {"@architectures": "spacy-elmo.SRLTagger.v1", "width": 16, "depth": 2, "dropout": 0.0}
MODELS = {
    "elmo_coref": {**RANKER, "tok2vec": LISTENER},
    "elmo_entailment": {**ESIM, "tok2vec": LISTENER},
    "elmo_qa": {**QA, "tok2vec": LISTENER},
    "elmo_srl": {**TAGGER, "tok2vec": LISTENER},
    "textcat": {**BCN, "exclusive_classes": True, "tok2vec": LISTENER},
    "textcat_multilabel": {**BCN, "exclusive_classes": False, "tok2vec": LISTENER},
    "ner": {"hidden_width": 8, "tok2vec": ENCODED},
    "spancat": {"reducer": {"hidden_size": 8}, "tok2vec": ENCODED},
}


def make_role_doc(vocab, text, *frames):
    """A doc of words, and frames such as {"V": (1, 2), "A0": (0, 1)}."""
    doc = Doc(vocab, words=text.split())
    write_frames(doc, [make_frame(doc, frame) for frame in frames])
    return doc


def make_frame(doc, frame):
    spans = [(label, Span(doc, *place, label=label)) for label, place in frame.items()]
    return Frame(dict(spans)["V"], sorted((s for s in spans if s[0] != "V"), key=lambda s: s[1]))


def read_roles(doc):
    """Frames of a doc, as `make_role_doc` takes them."""
    return [
        {"V": (frame.predicate.start, frame.predicate.end)}
        | {label: (span.start, span.end) for label, span in frame.arguments}
        for frame in read_frames(doc)
    ]


def make_corpus(vocab, n=12, seed=0):
    """Somebody eats something, and somebody else may make it."""
    rng = random.Random(seed)
    docs = []
    for _ in range(n):
        who, other = rng.sample(["Ann", "Bob", "Cleo"], 2)
        what = rng.choice(["ham", "green eggs"])
        end = 2 + len(what.split())
        eaten = {"V": (1, 2), "A0": (0, 1), "A1": (2, end)}
        if rng.random() < 0.5:
            text = f"{who} eats {what} that {other} makes ."
            made = {"V": (end + 2, end + 3), "A0": (end + 1, end + 2), "A1": (2, end)}
            docs.append(make_role_doc(vocab, text, eaten, {**made, "R-A1": (end, end + 1)}))
        else:
            docs.append(make_role_doc(vocab, f"{who} eats {what} .", eaten))
    return docs


def make_gold(nlp, name, n_docs=24, seed=0):
    """Annotated docs: each label can be seen from single words."""
    if name == "elmo_srl":
        return make_corpus(nlp.vocab, n_docs, seed)
    return toys.make_gold(nlp.vocab, name, seed, n_docs)


def make_examples(nlp, docs):
    """Examples whose docs to be predicted have the words, and the two texts of a pair."""
    examples = []
    for doc in docs:
        spaces = [bool(token.whitespace_) for token in doc]
        predicted = Doc(nlp.vocab, words=[t.text for t in doc], spaces=spaces)
        examples.append(Example(predicted, doc))
        for group in (*PAIR_NAMES, *QA_NAMES):
            copy_spans(examples[-1], group)
    return examples


def encode_skip(module, X):
    """What `SkipEncoder` makes of one sequence."""
    n_read = X.shape[1] - module.skip_width
    return torch.cat([module.lstm.layers[0](X[:, :n_read])[0], X[:, n_read:]], 1)


def make_task(name, *, n_updates=3, with_elmo=True, **model):
    """A pipeline with a trained component; `elmo` before it."""
    fix_random_seed(0)
    nlp = make_nlp()
    if not with_elmo:
        nlp.remove_pipe("elmo")
        model = {"tok2vec": HASHED, **model}
    nlp.add_pipe(name, config={"model": {**MODELS[name], **model}})
    train(nlp, make_gold(nlp, name), n_updates)
    return nlp


def train(nlp, docs, n_updates):
    examples = make_examples(nlp, docs)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.02
    losses = {}
    for _ in range(n_updates):
        losses = nlp.update(examples, sgd=optimizer, drop=0.0)
    return losses
