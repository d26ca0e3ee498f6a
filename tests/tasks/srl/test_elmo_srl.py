"""The component: trained, saved, copied, and on bad input."""

import copy
import re

import numpy as np
import pytest
import spacy
from spacy.tokens import DocBin, Span
from spacy.training import Example

from spacy_elmo.tasks.shared.corpora import build_span_corpus_v1
from spacy_elmo.tasks.srl.network import Clause

from ...support.helpers import make_nlp
from ...support.toy_roles import (
    LISTENER,
    PLAIN,
    add_srl,
    make_corpus,
    make_doc,
    make_examples,
    read,
    train,
)

TEXTS = ["Cleo eats green eggs that Ann makes .", "", "Bob", "Bob eats ham ."]


def make_trained(tok2vec, n_updates=60):
    nlp = make_nlp() if tok2vec is LISTENER else spacy.blank("en")
    add_srl(nlp, tok2vec)
    train(nlp, make_examples(make_corpus(nlp.vocab)), n_updates)
    return nlp


@pytest.fixture(scope="module")
def trained():
    return make_trained(PLAIN)


@pytest.fixture
def nlp():
    return spacy.blank("en")


def describe(nlp, texts=TEXTS, **settings):
    return [read(doc) for doc in nlp.pipe(texts, **settings)]


def test_it_learns_predicates_and_roles(trained):
    scores = trained.evaluate(make_examples(make_corpus(trained.vocab, seed=1)))
    (frame, other) = trained(TEXTS[0])._.elmo_srl

    assert scores["srl_f"] > 0.9 and scores["srl_predicate_f"] > 0.9
    assert [str(frame.predicate), str(other.predicate)] == ["eats", "makes"]
    assert [(label, str(span)) for label, span in frame.arguments] == [
        ("A0", "Cleo"), ("A1", "green eggs"),
    ]  # fmt: skip
    assert trained.get_pipe("elmo_srl").labels == ("A0", "A1", "R-A1")


def test_given_predicates_are_used(trained):
    nlp = copy.deepcopy(trained)
    nlp.get_pipe("elmo_srl").predicates = "given"
    doc = nlp.make_doc(TEXTS[0])
    doc.spans["srl_predicates"] = [doc[6:7], doc[2:4]]
    nlp(doc)

    # One frame each, in their order; all tokens of a predicate are its own.
    assert [frame["V"] for frame in read(doc)] == [(6, 7), (2, 4)]
    assert read(doc)[0]["A0"] == (5, 6)
    # Each once, and whitespace is none.
    spaced = nlp.make_doc("Sam  " + TEXTS[0])
    assert spaced[1].is_space
    spaced.spans["srl_predicates"] = [spaced[8:9], spaced[1:2], spaced[8:9], spaced[1:1]]
    assert [frame["V"] for frame in read(nlp(spaced))] == [(8, 9)]
    doc.spans["srl_predicates"] = []
    assert read(nlp(doc)) == []


def test_given_predicates_come_from_a_corpus(trained, tmp_path):
    nlp = copy.deepcopy(trained)
    nlp.get_pipe("elmo_srl").predicates = "given"
    nlp.get_pipe("elmo_srl").threshold = 1 - 1e-12
    DocBin(docs=make_corpus(nlp.vocab, seed=1)).to_disk(tmp_path / "x.spacy")
    corpus = build_span_corpus_v1(tmp_path / "x.spacy", ["srl_predicates"])
    scores = nlp.evaluate(list(corpus(nlp)))

    assert scores["srl_predicate_f"] == 1 and scores["srl_f"] > 0.9


def test_given_predicates_that_are_not_there_are_said(trained):
    nlp = copy.deepcopy(trained)
    nlp.get_pipe("elmo_srl").predicates = "given"
    with pytest.raises(ValueError, match="EL202.*'Bob eats ham .'.*srl_predicates"):
        nlp("Bob eats ham .")
    assert read(nlp("")) == []


def test_an_earlier_run_leaves_nothing(trained):
    doc = trained(TEXTS[0])
    doc.spans["sc"] = [doc[:1]]
    assert "srl_2" in doc.spans

    nlp = copy.deepcopy(trained)
    nlp.get_pipe("elmo_srl").threshold = 1 - 1e-12
    nlp(doc)
    assert sorted(doc.spans) == ["sc", "srl_predicates"] and doc._.elmo_srl == []


def test_labels_can_be_given(nlp):
    srl = add_srl(nlp)
    examples = make_examples(make_corpus(nlp.vocab))
    nlp.config["initialize"]["components"] = {"elmo_srl": {"labels": ["A0", "A9"]}}
    optimizer = nlp.initialize(lambda: examples)
    with pytest.warns(UserWarning, match="WL034") as warned:
        losses = nlp.update(examples, sgd=optimizer)

    # Older versions of spaCy's packages warn of other things, too.
    told = [warning for warning in warned if "WL034" in str(warning.message)]
    labels = {re.search("WL034.*role '(.*?)'", str(warning.message))[1] for warning in told}
    assert labels == {"A1", "R-A1"}
    assert srl.labels == ("A0", "A9") and srl.label_data == ["A0", "A9"]
    assert losses["elmo_srl"] > 0


def test_the_predicate_s_label_is_no_role(nlp):
    srl = add_srl(nlp)
    with pytest.raises(ValueError, match="EL193.*elmo_srl"):
        srl.add_label("V")
    assert srl.labels == ()


def test_a_component_that_was_never_trained_says_so(nlp):
    add_srl(nlp)
    assert nlp("")._.elmo_srl == []
    with pytest.raises(ValueError, match="EL190"):
        nlp("Bob eats .")
    with pytest.raises(ValueError, match="EL190"):
        nlp.update(make_examples([make_doc(nlp.vocab, "Bob")]))


def test_data_without_roles_is_said(nlp):
    add_srl(nlp)
    docs = [make_doc(nlp.vocab, "Bob eats .", {"V": (1, 2)}), make_doc(nlp.vocab, "Bob .")]
    with pytest.raises(ValueError, match="EL194.*'elmo_srl'.*at least 1.*srl_N"):
        nlp.initialize(lambda: make_examples(docs))


@pytest.mark.parametrize(
    "texts", [[""], ["", ""], ["a"], ["", "a", "a b"]], ids=["empty", "two", "one", "mixed"]
)
def test_it_trains_on_docs_without_frames(trained, texts):
    nlp = copy.deepcopy(trained)
    docs = [make_doc(nlp.vocab, text) for text in texts]
    losses = nlp.update(make_examples(docs), sgd=nlp.resume_training())

    assert np.isfinite(losses["elmo_srl"])
    # As it was written: by now it knows that these are no predicates.
    assert (losses["elmo_srl"] > 0) == any(texts)


def test_nothing_is_learned_from_docs_that_are_not_annotated(trained):
    nlp = copy.deepcopy(trained)
    docs = [nlp.make_doc("Bob eats ham .")]
    srl = nlp.get_pipe("elmo_srl")
    scores, _ = srl.model.begin_update((docs, lambda _: [[]]))
    loss, (d_predicates, d_tags) = srl.get_loss([Example(docs[0], docs[0].copy())], scores)

    assert loss == 0 and not d_predicates[0].any() and d_tags == []


def test_the_loss_has_its_gradient(trained):
    srl = trained.get_pipe("elmo_srl")
    examples = make_examples(make_corpus(trained.vocab, 2))
    places = [[(f.predicate.start, f.predicate.end) for f in eg.reference._.elmo_srl]
              for eg in examples]  # fmt: skip
    scores = srl.model.predict(([eg.predicted for eg in examples], lambda _: places))
    _, gradients = srl.get_loss(examples, scores)
    for arrays, d_arrays in zip((scores.predicates, scores.tags), gradients):
        for X, dX in zip(arrays, d_arrays):
            place = np.unravel_index(np.abs(dX).argmax(), dX.shape)
            value, losses = X[place], []
            for step in (0.01, -0.01):
                X[place] = value + step
                losses.append(srl.get_loss(examples, scores)[0])
            X[place] = value
            assert dX[place] == pytest.approx((losses[0] - losses[1]) / 0.02, rel=0.02, abs=1e-5)


def test_gold_without_a_predicate_is_said(trained):
    doc = make_doc(trained.vocab, "Bob eats ham .")
    doc.spans["srl_1"] = [Span(doc, 0, 1, label="A0")]
    for use in (trained.evaluate, trained.update):
        with pytest.raises(ValueError, match="EL200"):
            use(make_examples([doc]))


def test_thresholds_at_their_limits_choose_all_words_or_none(trained, monkeypatch):
    srl, text = trained.get_pipe("elmo_srl"), "Bob eats\n\ngreen  eggs ."
    monkeypatch.setattr(srl, "threshold", 1.0)
    assert trained(text)._.elmo_srl == []
    monkeypatch.setattr(srl, "threshold", 0.0)
    frames = trained(text)._.elmo_srl
    assert [str(frame.predicate) for frame in frames] == ["Bob", "eats", "green", "eggs", "."]
    spans = [span for frame in frames for _, span in frame.arguments]
    assert spans and not any(span[0].is_space or span[-1].is_space for span in spans)


def test_roles_begin_and_end_with_words(trained):
    srl, doc = trained.get_pipe("elmo_srl"), trained.make_doc("Bob eats \n\n ham \n\n . \n")
    clause = Clause(0, 0, len(doc), (1, 2))
    first = 3 + 2 * srl.labels.index("A1")
    frames = []
    for start, end in ((2, 5), (2, 3)):
        tags = [0, 1, *[0] * (len(doc) - 2)]
        tags[start:end] = [first, *[first + 1] * (end - start - 1)]
        srl.set_annotations([doc], [[(clause, tags)]])
        frames.append([(label, str(span)) for label, span in doc._.elmo_srl[0].arguments])
    assert frames == [[("A1", "ham")], []]


def test_many_docs_are_read_in_parts(trained, monkeypatch):
    expected = describe(trained, TEXTS * 3)
    srl, sizes = trained.get_pipe("elmo_srl"), []
    predict = srl._predict
    monkeypatch.setattr("spacy_elmo.tasks.srl.elmo_srl._MOST_TOKENS", 10)
    monkeypatch.setattr(srl, "_predict", lambda docs: (sizes.append(docs), predict(docs))[1])

    assert describe(trained, TEXTS * 3) == expected
    assert len(sizes) > 3 and all(len(s) == 1 or sum(map(len, s)) <= 10 for s in sizes)
