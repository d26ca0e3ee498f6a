"""Gold tags of clauses, and tags read as spans."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_elmo.tasks.srl.frames import write_frames
from spacy_elmo.tasks.srl.network import Clause
from spacy_elmo.tasks.srl.tags import UNKNOWN, GoldFrame, find_gold, make_tags, read_roles

from ...support.toy_roles import make_doc, make_examples, make_frame

LABELS = ["A0", "A1"]
NUMBERS = {"A0": 0, "A1": 1}


@pytest.fixture
def vocab():
    return spacy.blank("en").vocab


def make_gold(vocab, n_tokens, predicate, **arguments):
    doc = Doc(vocab, words=["a"] * n_tokens)
    return GoldFrame(predicate, [Span(doc, *place, label=k) for k, place in arguments.items()], [])


def test_tags_are_bio_and_read_back(vocab):
    gold = make_gold(vocab, 9, (3, 5), A0=(1, 3), A1=(5, 6))
    clause = Clause(0, 1, 8, (3, 5))
    tags = make_tags(clause, gold, NUMBERS)

    assert tags.tolist() == [3, 4, 1, 2, 5, 0, 0]
    assert read_roles(tags.tolist(), clause, LABELS) == [
        (1, 3, "A0"), (3, 5, "V"), (5, 6, "A1"),
    ]  # fmt: skip
    # Two of one role, side by side.
    assert read_roles([3, 3, 4, 1], Clause(0, 0, 4, (3, 4)), LABELS)[:2] == [
        (0, 1, "A0"), (1, 3, "A0"),
    ]  # fmt: skip


def test_unknown_roles_are_told_and_left_out(vocab):
    gold = make_gold(vocab, 4, (1, 2), A0=(0, 1), A9=(2, 4))
    with pytest.warns(UserWarning, match="WL034.*'A9'"):
        tags = make_tags(Clause(0, 0, 4, (1, 2)), gold, NUMBERS)
    assert tags.tolist() == [3, 1, UNKNOWN, UNKNOWN]


def test_arguments_beyond_the_clause_are_told_and_left_out(vocab):
    gold = make_gold(vocab, 9, (3, 4), A0=(0, 3), A1=(6, 9))
    with pytest.warns(UserWarning, match="WL034"):
        tags = make_tags(Clause(0, 2, 6, (3, 4)), gold, NUMBERS)
    assert tags.tolist() == [UNKNOWN, 1, 0, 0]


@pytest.mark.parametrize(
    "arguments, kept",
    [
        ({"A0": (2, 4), "A1": (3, 7)}, [(3, 7)]),
        ({"A0": (0, 2), "A1": (3, 4)}, [(3, 4)]),
        ({"A0": (0, 3), "A1": (2, 4)}, [(2, 4)]),
    ],
    ids=["the longest", "over the predicate", "over the predicate and the other"],
)
def test_overlapping_arguments_are_told_and_resolved(vocab, arguments, kept):
    examples = make_examples([make_doc(vocab, "a b c d e f g", {"V": (1, 2), **arguments})])
    with pytest.warns(UserWarning, match="WL034"):
        (frame,) = find_gold(examples[0]).frames
    assert [(span.start, span.end) for span in frame.arguments] == kept


def test_gold_is_in_the_tokens_of_the_predicted_doc(vocab):
    doc = make_doc(
        vocab, "He do n't eat green-eggs and ham",
        {"V": (1, 2), "NEG": (2, 3)}, {"V": (3, 4), "A0": (0, 1), "A1": (4, 7)},
    )  # fmt: skip
    words = ["He", "don't", "eat", "green", "-", "eggs", "and", "ham"]
    predicted = Doc(vocab, words=words)
    with pytest.warns(UserWarning, match="WL039.*gold_preproc"):
        gold = find_gold(Example(predicted, doc))

    # "do" is inside of a token, and its frame is left out.
    assert gold.predicates == [2] and gold.unknown == [1]
    (frame,) = gold.frames
    assert frame.predicate == (2, 3)
    assert [(s.start, s.end, s.label_) for s in frame.arguments] == [(0, 1, "A0"), (3, 8, "A1")]


def test_arguments_inside_of_tokens_are_told_and_not_learned(vocab):
    roles = {"V": (1, 2), "A0": (2, 3), "A1": (3, 5), "A2": (0, 1)}
    words = ["Ann", "likes", "Bob", "'s", "book"]
    doc = Doc(vocab, words=words, spaces=[True, True, False, True, False])
    write_frames(doc, [make_frame(doc, roles)])
    predicted = Doc(vocab, words=["Ann", "likes", "Bob's", "book"])
    with pytest.warns(UserWarning, match="WL039"):
        gold = find_gold(Example(predicted, doc))

    (frame,) = gold.frames
    assert [span.label_ for span in frame.arguments] == ["A2"]
    tags = make_tags(Clause(0, 0, 4, (1, 2)), frame, {"A0": 0, "A1": 1, "A2": 2})
    assert tags.tolist() == [7, 1, UNKNOWN, UNKNOWN]


def test_predicates_without_a_frame_are_predicates(vocab):
    doc = make_doc(vocab, "He ran and ate ham", {"V": (3, 4), "A1": (4, 5)})
    doc.spans["srl_predicates"] = [doc[1:2], doc[3:4]]
    gold = find_gold(make_examples([doc])[0])
    assert gold.predicates == [1, 3] and gold.unknown == []
    assert [frame.predicate for frame in gold.frames] == [(3, 4)]


def test_docs_that_are_not_annotated_have_no_gold(vocab):
    assert find_gold(make_examples([Doc(vocab, words=["a"])])[0]) == ([], [], [])
    assert np.all(make_tags(Clause(0, 0, 2, (0, 1)), GoldFrame((0, 1), [], []), {}) == [1, 0])
