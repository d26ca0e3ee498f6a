"""Sentences with frames that can be learned in a few updates."""

import random

from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_elmo.tasks.srl.frames import Frame, read_frames, write_frames

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
    "width": 8,
    "depth": 2,
}


def add_srl(nlp, tok2vec=HASHED, *, width=16, depth=2, model=None, **settings):
    model = {
        "@architectures": "spacy-elmo.SRLTagger.v1",
        "tok2vec": tok2vec,
        "width": width,
        "depth": depth,
        **(model or {}),
    }
    return nlp.add_pipe("elmo_srl", config={"model": model, **settings})


def make_doc(vocab, text, *frames):
    """A doc of words, and frames such as {"V": (1, 2), "A0": (0, 1)}."""
    doc = Doc(vocab, words=text.split())
    write_frames(doc, [make_frame(doc, frame) for frame in frames])
    return doc


def make_frame(doc, frame):
    spans = [(label, Span(doc, *place, label=label)) for label, place in frame.items()]
    return Frame(dict(spans)["V"], sorted((s for s in spans if s[0] != "V"), key=lambda s: s[1]))


def read(doc):
    """Frames of a doc, as `make_doc` takes them."""
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
            docs.append(make_doc(vocab, text, eaten, {**made, "R-A1": (end, end + 1)}))
        else:
            docs.append(make_doc(vocab, f"{who} eats {what} .", eaten))
    return docs


def make_examples(docs):
    return [Example(Doc(d.vocab, words=[t.text for t in d]), d) for d in docs]


def train(nlp, examples, n_updates=40):
    """The losses."""
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    return [nlp.update(examples, sgd=optimizer)["elmo_srl"] for _ in range(n_updates)]
