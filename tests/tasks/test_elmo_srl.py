"""The component elmo_srl."""

import copy

import pytest
import spacy

from ..support.helpers import assert_gradient
from ..support.toy_tasks import (
    HASHED,
    TAGGER,
    make_examples,
    make_gold,
    make_task,
    read_roles,
)

TEXTS = ["Cleo eats green eggs that Ann makes .", "", "Bob", "Bob eats ham ."]


@pytest.fixture(scope="module")
def trained():
    return make_task("elmo_srl", n_updates=60, with_elmo=False)


def test_it_learns_predicates_and_roles(trained):
    scores = trained.evaluate(make_examples(trained, make_gold(trained, "elmo_srl", seed=1)))
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
    assert [frame["V"] for frame in read_roles(doc)] == [(6, 7), (2, 4)]
    assert read_roles(doc)[0]["A0"] == (5, 6)
    # Each once, without whitespace.
    spaced = nlp.make_doc("Sam  " + TEXTS[0])
    assert spaced[1].is_space
    spaced.spans["srl_predicates"] = [spaced[8:9], spaced[1:2], spaced[8:9], spaced[1:1]]
    assert [frame["V"] for frame in read_roles(nlp(spaced))] == [(8, 9)]
    doc.spans["srl_predicates"] = []
    assert read_roles(nlp(doc)) == []


def test_missing_predicates_are_an_error(trained):
    nlp = copy.deepcopy(trained)
    nlp.get_pipe("elmo_srl").predicates = "given"
    with pytest.raises(ValueError, match="EL202.*'Bob eats ham .'.*srl_predicates"):
        nlp("Bob eats ham .")
    assert read_roles(nlp("")) == []


def test_the_label_of_the_predicate_is_not_a_role():
    model = {**TAGGER, "tok2vec": HASHED}
    srl = spacy.blank("en").add_pipe("elmo_srl", config={"model": model})
    with pytest.raises(ValueError, match="EL193.*elmo_srl"):
        srl.add_label("V")
    assert srl.labels == ()


def test_the_loss_has_its_gradient(trained):
    srl = trained.get_pipe("elmo_srl")
    examples = make_examples(trained, make_gold(trained, "elmo_srl", 2))
    places = [[(f.predicate.start, f.predicate.end) for f in eg.reference._.elmo_srl]
              for eg in examples]  # fmt: skip
    scores = srl.model.predict(([eg.predicted for eg in examples], lambda _: places))
    _, gradients = srl.get_loss(examples, scores)
    for arrays, d_arrays in zip((scores.predicates, scores.tags), gradients):
        compute = lambda: srl.get_loss(examples, scores)[0]  # noqa: E731
        assert_gradient(compute, arrays, d_arrays, eps=0.01, atol=1e-4, every=7)


def test_thresholds_at_their_limits_choose_all_words_or_none(trained, monkeypatch):
    srl, text = trained.get_pipe("elmo_srl"), "Bob eats\n\ngreen  eggs ."
    monkeypatch.setattr(srl, "threshold", 1.0)
    assert trained(text)._.elmo_srl == []
    monkeypatch.setattr(srl, "threshold", 0.0)
    frames = trained(text)._.elmo_srl
    assert [str(frame.predicate) for frame in frames] == ["Bob", "eats", "green", "eggs", "."]
    spans = [span for frame in frames for _, span in frame.arguments]
    assert spans and not any(span[0].is_space or span[-1].is_space for span in spans)
