"""Frames in span groups, and their scores by the rules of srl-eval.pl."""

import pytest
import spacy
from spacy import displacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_elmo.tasks.srl.frames import (
    Frame,
    describe_frame,
    read_frames,
    score_frames,
    write_frames,
)

from ..support.toy_tasks import make_role_doc, read_roles

TEXT = "Ann eats ham that Bob makes ."
VOCAB = spacy.blank("en").vocab
FRAMES = [
    {"V": (1, 2), "A0": (0, 1), "A1": (2, 6)},
    {"V": (5, 6), "A0": (4, 5), "A1": (2, 3), "R-A1": (3, 4)},
]


def test_writing_frames_replaces_frames_only():
    doc = make_role_doc(VOCAB, TEXT, *FRAMES)
    doc.spans["srl_x"] = doc.spans["sc"] = doc.spans["srl_01"] = [doc[:2]]
    write_frames(doc, read_frames(doc)[1:])

    assert set(doc.spans) == {"srl_1", "srl_predicates", "srl_x", "srl_01", "sc"}
    assert read_roles(doc) == FRAMES[1:]


@pytest.mark.parametrize("labels, n", [(["A0"], 0), (["V", "V"], 2), ([], 0)])
def test_groups_need_one_predicate(labels, n):
    doc = Doc(VOCAB, words=["Ann", "eats"])
    # A span without tokens is no predicate.
    doc.spans["srl_3"] = [
        Span(doc, 1, 1, label="V"),
        *(Span(doc, i, i + 1, label=label) for i, label in enumerate(labels)),
    ]
    with pytest.raises(ValueError, match=f"EL200.*'srl_3' of the doc 'Ann eats ' has {n} spans"):
        read_frames(doc)


@pytest.mark.parametrize("starts", [None, [True, False, False, False, True, False, False]])
def test_displacy_draws_a_frame(starts):
    doc = Doc(VOCAB, words=TEXT.split(), sent_starts=starts)
    write_frames(doc, read_frames(make_role_doc(VOCAB, TEXT)))
    doc.spans["srl_1"] = [Span(doc, *place, label=k) for k, place in FRAMES[1].items()][:2]
    data = describe_frame(read_frames(doc)[0])
    html = displacy.render(data, style="span", manual=True)

    assert data["tokens"] == TEXT.split()[4 if starts else 0 :]
    assert [data["tokens"][s["start_token"]] for s in data["spans"]] == ["makes", "Bob"]
    assert "A0" in html and "Bob" in html


# Name -> gold and predicted spans of one predicate, then right, excess and missed arguments.
CASES = {
    "the same": ("V:2 A0:0-1 A1:3", "V:2 A0:0-1 A1:3", (2, 0, 0)),
    "another label": ("V:2 A0:0-1 A1:3", "V:2 A2:0-1 A1:3", (1, 1, 1)),
    "another end": ("V:2 A0:0-1", "V:2 A0:0", (0, 1, 1)),
    "none": ("V:2 A0:0-1 A1:3", "V:2", (0, 0, 2)),
    "too many": ("V:2", "V:2 A0:0-1 A1:3", (0, 2, 0)),
    "the verb does not count": ("V:2-3 A0:0", "V:2 A0:0", (1, 0, 0)),
    "nor its continuation": ("V:2 C-V:4 A0:0", "V:2 A0:0", (1, 0, 0)),
    "two of one role": ("V:2 TMP:0 TMP:4", "V:2 TMP:0 TMP:4", (2, 0, 0)),
    "a reference is a role": ("V:2 R-A0:0", "V:2 A0:0", (0, 1, 1)),
    "in two parts": ("V:2 A1:0-1 C-A1:4", "V:2 A1:0-1 C-A1:4", (1, 0, 0)),
    "a part is missing": ("V:2 A1:0-1 C-A1:4", "V:2 A1:0-1", (0, 1, 1)),
    "a part is wrong": ("V:2 A1:0-1 C-A1:4", "V:2 A1:0 C-A1:4", (0, 1, 1)),
    "parts, not one span": ("V:2 A1:3 C-A1:5", "V:2 A1:3-5", (0, 1, 1)),
    "in three parts": ("V:2 A1:0 C-A1:3 C-A1:5", "V:2 A1:0 C-A1:3 C-A1:5", (1, 0, 0)),
    "two parts of three": ("V:2 A1:0 C-A1:3 C-A1:5", "V:2 A1:0 C-A1:5", (0, 1, 1)),
    "a continuation of nothing": ("V:2 A1:4", "V:2 C-A1:4", (1, 0, 0)),
    "a continuation of the last": ("V:2 A1:0 A1:1 C-A1:4", "V:2 A1:0 A1:1 C-A1:4", (2, 0, 0)),
    "a continuation of another": ("V:2 A1:0 C-A1:4", "V:2 A0:0 C-A1:4", (0, 2, 1)),
}  # fmt: skip


def make(frames, words=("a", "b", "c", "d", "e", "f", "g")):
    doc = Doc(VOCAB, words=[*words])
    made = []
    for frame in frames:
        spans = []
        for item in frame.split():
            label, _, place = item.partition(":")
            start, _, end = place.partition("-")
            spans.append(Span(doc, int(start), int(end or start) + 1, label=label))
        verb = next(span for span in spans if span.label_ == "V")
        made.append(Frame(verb, [(s.label_, s) for s in spans if s is not verb]))
    write_frames(doc, made)
    return doc


@pytest.mark.parametrize("gold, predicted, numbers", CASES.values(), ids=CASES)
def test_arguments_are_counted_as_the_script_counts_them(gold, predicted, numbers):
    right, excess, missed = numbers
    scores = score_frames([Example(make([predicted]), make([gold]))])

    assert scores["srl_p"] == pytest.approx(right / max(1, right + excess))
    assert scores["srl_r"] == pytest.approx(right / max(1, right + missed))
    assert scores["srl_predicate_f"] == 1


def test_all_arguments_of_a_missed_predicate_are_missed():
    gold, predicted = make(["V:1 A0:0 A1:2", "V:4 A0:3"]), make(["V:4 A0:3"])
    scores = score_frames([Example(predicted, gold)])

    assert (scores["srl_p"], scores["srl_r"]) == pytest.approx((1, 1 / 3))
    assert (scores["srl_predicate_p"], scores["srl_predicate_r"]) == pytest.approx((1, 1 / 2))
    assert scores["srl_per_type"]["A0"]["r"] == pytest.approx(1 / 2)
    assert sorted(scores["srl_per_type"]) == ["A0", "A1"]


def test_all_arguments_of_a_wrong_predicate_are_excess():
    """Ours: the script leaves them out."""
    gold, predicted = make(["V:4 A0:3"]), make(["V:1 A0:0 A1:2", "V:4 A0:3"])
    scores = score_frames([Example(predicted, gold)])

    assert (scores["srl_p"], scores["srl_r"]) == pytest.approx((1 / 3, 1))
    assert scores["srl_predicate_p"] == pytest.approx(1 / 2)


def test_arguments_of_predicates_without_a_frame_do_not_count():
    gold, predicted = make(["V:4 A0:3"]), make(["V:1 A0:0 A1:2", "V:4 A0:3"])
    gold.spans["srl_predicates"] = [gold[1:2], gold[4:5]]
    scores = score_frames([Example(predicted, gold)])
    assert (scores["srl_p"], scores["srl_r"], scores["srl_predicate_f"]) == (1, 1, 1)

    scores = score_frames([Example(make(["V:4 A0:3"]), gold)])
    assert scores["srl_f"] == 1 and scores["srl_predicate_r"] == pytest.approx(1 / 2)


def test_tokenizers_need_not_agree():
    gold = make(["V:2 A1:3-4", "V:1"], words=["He", "do", "n't", "eat", "!"])
    predicted = Doc(VOCAB, words=["He", "don't", " ", "eat!"], spaces=[True, False, False, False])
    write_frames(predicted, [])
    predicted.spans["srl_1"] = [Span(predicted, 1, 2, label="V"), Span(predicted, 3, 4, label="A1")]
    scores = score_frames([Example(predicted, gold)])

    assert (scores["srl_p"], scores["srl_r"]) == (0, 0)
    assert scores["srl_predicate_p"] == 1 and scores["srl_predicate_r"] == pytest.approx(1 / 2)


def test_docs_without_annotation_do_not_count():
    plain = Doc(VOCAB, words=["a", "b"])
    example = Example(make(["V:1 A0:0"], words=["a", "b"]), plain)

    assert set(score_frames([example]).values()) == {None}
    assert score_frames([example, Example(make([]), make([]))])["srl_f"] == 0
    assert read_frames(plain) == []
