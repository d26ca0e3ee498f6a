"""Tasks small enough to be learned in seconds, over a tiny random biLM."""

import random

import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import fix_random_seed

from spacy_elmo.tasks.coref.clusters import set_gold_clusters
from spacy_elmo.tasks.entailment.readers import PAIR_NAMES
from spacy_elmo.tasks.qa.answers import set_gold
from spacy_elmo.tasks.qa.network import PAIR_NAMES as QA_NAMES
from spacy_elmo.tasks.shared.corpora import copy_spans
from spacy_elmo.tasks.shared.text_pairs import make_pair
from spacy_elmo.tasks.srl.frames import Frame, read_frames, write_frames

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
QA = {"@architectures": "spacy-elmo.QABiDAF.v2", "width": 12, "dropout": 0.0, "word_match": True}
RANKER = {
    "@architectures": "spacy-elmo.CorefSpanRanker.v2",
    "width": 12,
    "max_span": 2,
    "share": 1.0,
    "n_antecedents": 8,
    "dropout": 0.0,
    "word_match": True,
}
TAGGER = {"@architectures": "spacy-elmo.SRLTagger.v1", "width": 16, "depth": 2, "dropout": 0.0}
MODELS = {
    "elmo_coref": {**RANKER, "tok2vec": LISTENER},
    "elmo_entailment": {**ESIM, "tok2vec": LISTENER},
    "elmo_qa": {**QA, "tok2vec": LISTENER},
    "elmo_srl": {**TAGGER, "tok2vec": LISTENER},
    "textcat": {**BCN, "exclusive_classes": True, "tok2vec": LISTENER},
    "textcat_multilabel": {**BCN, "exclusive_classes": False, "tok2vec": LISTENER},
    "ner": {
        "@architectures": "spacy.TransitionBasedParser.v2",
        "state_type": "ner",
        "extra_state_tokens": False,
        "hidden_width": 8,
        "maxout_pieces": 2,
        "use_upper": True,
        "tok2vec": ENCODED,
    },
    "spancat": {
        "@architectures": "spacy.SpanCategorizer.v1",
        "scorer": {"@layers": "spacy.LinearLogistic.v1"},
        "reducer": {"@layers": "spacy.mean_max_reducer.v1", "hidden_size": 8},
        "tok2vec": ENCODED,
    },
}
WORDS = ["green", "eggs", "ham", "and", "like", "Sam"]


def make_gold(nlp, name, n_docs=24, seed=0):
    """Docs in which all that is asked can be seen from single words."""
    if name == "elmo_srl":
        return make_corpus(nlp.vocab, n_docs, seed)
    rng = random.Random(seed)
    makers = {
        "elmo_coref": _clusters,
        "elmo_entailment": _pair,
        "elmo_qa": _question,
        "ner": _entities,
        "spancat": _entities,
    }
    make = makers.get(name, _text)
    return [make(nlp, rng) for _ in range(n_docs)]


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


def _words(rng, n):
    return [rng.choice(WORDS) for _ in range(n)]


def _pair(nlp, rng):
    premise = _words(rng, rng.randrange(1, 6))
    hypothesis = _words(rng, rng.randrange(1, 4))
    doc = make_pair(nlp, " ".join(premise), " ".join(hypothesis), PAIR_NAMES)
    doc.cats = {"yes": float(hypothesis[0] < "h"), "no": float(hypothesis[0] >= "h")}
    return doc


def _question(nlp, rng):
    """Where is Sam, or like, with the word behind it? It may be nowhere."""
    asked = rng.choice(["Sam", "like"])
    others = [word for word in WORDS if word != asked]
    context = [rng.choice(others) for _ in range(rng.randrange(3, 7))]
    place = rng.randrange(len(context) - 1)
    has_answer = rng.random() < 0.7
    if has_answer:
        context[place] = asked
    doc = make_pair(nlp, asked, " ".join(context), QA_NAMES)
    set_gold(doc, [doc[place + 1 : place + 3]] if has_answer else [])
    return doc


def _text(nlp, rng):
    words = _words(rng, rng.randrange(1, 6))
    doc = Doc(nlp.vocab, words=words)
    doc.cats = {"good": float("eggs" in words), "bad": float("eggs" not in words)}
    return doc


def _entities(nlp, rng):
    doc = Doc(nlp.vocab, words=_words(rng, rng.randrange(1, 6)))
    spans = [Span(doc, t.i, t.i + 1, label="FOOD") for t in doc if t.text in ("eggs", "ham")]
    spans += [Span(doc, t.i, t.i + 1, label="PER") for t in doc if t.text == "Sam"]
    doc.set_ents(spans)
    doc.spans["sc"] = spans
    return doc


def _clusters(nlp, rng):
    words = _words(rng, rng.randrange(1, 8))
    found = [[(i, i + 1) for i, w in enumerate(words) if w == word] for word in ("Sam", "eggs")]
    doc = Doc(nlp.vocab, words=words)
    set_gold_clusters(doc, [cluster for cluster in found if len(cluster) > 1])
    return doc


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


def read_output(docs):
    """Predictions, rounded to the precision that batches keep."""
    return [
        (
            [(e.start, e.end, e.label_) for e in doc.ents],
            sorted((s.start, s.end, s.label_) for s in doc.spans.get("sc", [])),
            {label: round(value, 4) for label, value in doc.cats.items()},
            doc._.entailment,
            doc._.qa_answer and (doc._.qa_answer.text, round(doc._.qa_answer.probability, 4)),
            read_roles(doc),
        )
        for doc in docs
    ]
