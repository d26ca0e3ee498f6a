"""The component "elmo_lm", held against the softmax over the embedder's layers."""

import math

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc, DocBin

from spacy_elmo import load_embedder
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.formats import CheckpointFiles
from spacy_elmo.checkpoints.native import write_native
from spacy_elmo.language_model.evaluation import Scorer, measure
from spacy_elmo.language_model.loading import collect_softmax, load_language_model
from spacy_elmo.language_model.softmax import make_softmax

from ..support.helpers import SHAPE, TEXTS, assert_close

WORDS = ["<S>", "</S>", "<UNK>", "eggs", "ham", "I", "like", ".", "and", "green"]
KINDS = {"full": {}, "sampled": {"n_samples": 3}, "adaptive": {"cutoffs": [4]}}


@pytest.fixture(params=KINDS)
def folder(request, tmp_path):
    """A folder with a toy language model."""
    torch.manual_seed(0)
    bilm = BiLM(BiLMConfig(**SHAPE))
    settings = KINDS[request.param]
    softmax = make_softmax(request.param, 4, len(WORDS), **settings)
    stored = collect_softmax(softmax, request.param, settings, WORDS)
    write_native(bilm, tmp_path / "lm", softmax=stored)
    return tmp_path / "lm"


def make_lm(folder, **settings):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo_lm", config={"path": str(folder), **settings})
    return nlp


def entries(docs):
    return [np.stack([doc._.elmo_lm["forward"], doc._.elmo_lm["backward"]]) for doc in docs]


def test_log_probs_are_those_of_the_softmax_over_the_layers(folder):
    doc = make_lm(folder)("I like green eggs and spam .")
    model, vocabulary, _ = load_language_model(CheckpointFiles(folder))
    words = [token.text for token in doc]
    top = torch.from_numpy(load_embedder(folder).embed([words])[0][-1])
    rows = torch.from_numpy(vocabulary.encode(words))
    with torch.no_grad():
        forward = model.softmax.log_probs(top[:-1, :4])
        backward = model.softmax.log_probs(top[1:, 4:])

    found = np.array([token._.elmo_logprob for token in doc])

    assert_close([found[1:, 0]], [forward.gather(1, rows[1:, None])[:, 0]])
    assert_close([found[:-1, 1]], [backward.gather(1, rows[:-1, None])[:, 0]])
    assert doc[2]._.elmo_surprisal == pytest.approx(-found[2, 0] / math.log(2))
    assert doc._.elmo_lm["is_known"].tolist() == [word in WORDS for word in words]


def test_perplexity_is_that_of_evaluate(folder):
    doc = make_lm(folder)("I like green eggs and ham .")
    model, vocabulary, _ = load_language_model(CheckpointFiles(folder))
    words = [[token.text for token in doc]]

    expected = measure(Scorer(model, vocabulary), words, batch_tokens=100).perplexities

    assert doc._.elmo_perplexity == pytest.approx(expected[2], rel=1e-5)


def test_words_that_are_cut_are_told_once(folder):
    nlp = make_lm(folder)
    with pytest.warns(UserWarning, match="WL003.*3 of 4 words are cut to 12 bytes"):
        nlp("green" + 3 * (" " + "x" * 13))
    nlp("x" * 14)


def test_batches_windows_and_whitespace(folder):
    nlp = make_lm(folder, batch_tokens=5)
    docs = list(nlp.pipe(TEXTS, batch_size=4))

    assert_close(entries(docs), entries([make_lm(folder)(text) for text in TEXTS]))
    for doc in docs:
        is_nan = np.isnan(doc._.elmo_lm["forward"])
        assert is_nan.tolist() == [token.is_space for token in doc]
        assert (doc._.elmo_perplexity is None) == (len(doc) == 0)


def test_a_doc_in_windows_counts_each_end(folder):
    spans = {"@misc": "spacy-elmo.window_spans.v1", "window": 3}
    doc = make_lm(folder, get_spans=spans)("I like ham and eggs")

    # Windows of three and two words, and an end of each.
    assert doc._.elmo_lm["n_predictions"] == 7
    parts = [make_lm(folder)(text) for text in ("I like ham", "and eggs")]
    assert_close(entries([doc]), [np.concatenate(entries(parts), axis=1)])
    total = sum(part._.elmo_lm["nats"] for part in parts)
    assert doc._.elmo_lm["nats"] == pytest.approx(total)


def test_substitutes_are_both_directions_together(folder):
    nlp = make_lm(folder)
    doc = nlp("I like ham .")
    model = load_language_model(CheckpointFiles(folder)).model
    hidden = torch.from_numpy(doc._.elmo_lm["hidden"][2]).view(2, 4)
    with torch.no_grad():
        probs = model.softmax.log_probs(hidden).sum(dim=0).exp()[3:]
    # Divided by their frequencies after Zipf and Mandelbrot.
    probs *= torch.arange(1, len(probs) + 1) + 2.7

    found = doc[2]._.elmo_substitutes(100)

    assert sorted(word for word, _ in found) == sorted(WORDS[3:])
    assert sum(p for _, p in found) == pytest.approx(1.0)
    assert [p for _, p in found] == sorted((p for _, p in found), reverse=True)
    expected = dict(zip(WORDS[3:], (probs / probs.sum()).tolist()))
    assert dict(found) == pytest.approx(expected, rel=1e-4)
    assert doc[2]._.elmo_substitutes(2) == found[:2]


def test_the_best_substitutes_are_not_the_most_frequent_tokens():
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo_lm")
    for text, i in (("She gave a speech at the university.", 3), ("I had coffee and toast.", 2)):
        ((word, _),) = nlp(text)[i]._.elmo_substitutes(1)
        assert word.isalpha()


@pytest.mark.parametrize("n", [2.5, "3"])
def test_the_number_of_substitutes_is_an_integer(folder, n):
    nlp = make_lm(folder)
    doc = nlp("I like ham .")
    with pytest.raises(TypeError, match="integer"):
        doc[2]._.elmo_substitutes(n)


def test_docs_of_forked_processes_have_substitutes(folder):
    other = make_lm(folder)
    expected = other("I like ham")[1]._.elmo_substitutes(2)
    del other
    # Nothing was annotated, or loaded, in this process.
    nlp = make_lm(folder)
    docs = list(nlp.pipe(["I like ham", "I like eggs"], n_process=2))

    found = docs[0][1]._.elmo_substitutes(2)
    assert [word for word, _ in found] == [word for word, _ in expected]
    assert [p for _, p in found] == pytest.approx([p for _, p in expected], abs=1e-5)


def test_docs_travel_without_the_model(folder):
    nlp = make_lm(folder)
    doc = nlp("I like ham")
    data = DocBin(docs=[doc], store_user_data=True).to_bytes()
    del nlp

    other = next(DocBin().from_bytes(data).get_docs(spacy.blank("en").vocab))

    assert other[1]._.elmo_logprob == doc[1]._.elmo_logprob
    with pytest.raises(ValueError, match="EL055"):
        other[1]._.elmo_substitutes(3)


def test_substitutes_of_other_weights_are_refused(folder, tmp_path):
    nlp = make_lm(folder)
    doc = nlp("I like ham")
    doc[1]._.elmo_substitutes()

    # The same weights, read anew.
    nlp.get_pipe("elmo_lm").from_bytes(nlp.get_pipe("elmo_lm").to_bytes())
    assert doc[1]._.elmo_substitutes()
    other = make_lm(folder).get_pipe("elmo_lm")
    other.load().model.bilm.forward_lstm.layers[0].bias.fill_(1.0)
    data = other.to_bytes()
    del other
    nlp.get_pipe("elmo_lm").from_bytes(data)

    with pytest.raises(ValueError, match="EL055"):
        doc[1]._.elmo_substitutes()
    assert nlp("I like ham")[1]._.elmo_substitutes()


@pytest.mark.parametrize("text", ["", " ", "\n\n"])
def test_text_without_words_has_no_perplexity(folder, text):
    nlp = make_lm(folder)

    assert nlp(text)._.elmo_perplexity is None
    assert nlp(text).to_json(underscore=["elmo_perplexity"])["_"] == {"elmo_perplexity": None}
    docs = list(nlp.pipe([text, "ham", text, text]))
    assert [doc._.elmo_perplexity is None for doc in docs] == [True, False, True, True]


def test_what_is_missing_is_said(folder, tmp_path):
    nlp = make_lm(folder, substitutes=False)
    doc = nlp("ham \n eggs")
    with pytest.raises(ValueError, match="EL055"):
        doc[0]._.elmo_substitutes()
    other = make_lm(folder)
    with pytest.raises(ValueError, match="EL012.*n = -1"):
        other("ham")[0]._.elmo_substitutes(-1)
    with pytest.raises(ValueError, match="Whitespace in 'ham"):
        other("ham \n eggs")[1]._.elmo_substitutes()
    with pytest.raises(ValueError, match=r"EL054.*unread"):
        _ = Doc(nlp.vocab, words=["unread"])[0]._.elmo_logprob
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    with pytest.raises(ValueError, match="EL050"):
        _ = doc._.elmo_perplexity
    with pytest.raises(ValueError, match=r"EL012.*batch_tokens = 0"):
        make_lm(folder, batch_tokens=0)
    write_native(BiLM(BiLMConfig(**SHAPE)), tmp_path / "bare")
    with pytest.raises(ValueError, match="EL074"):
        make_lm(tmp_path / "bare")("ham")
