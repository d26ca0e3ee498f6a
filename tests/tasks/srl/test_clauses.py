"""What is read for a predicate."""

from itertools import pairwise

import numpy as np
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_elmo.tasks.srl.clauses import Clause, find_rows, make_clauses, split_by_size

VOCAB = spacy.blank("en").vocab


def make(n_tokens, starts=None):
    flags = None if starts is None else [i in starts for i in range(n_tokens)]
    return Doc(VOCAB, words=["a"] * n_tokens, sent_starts=flags)


def test_a_predicate_has_its_sentence():
    docs = [make(7, [0, 3]), make(0), make(4, [0])]
    clauses = make_clauses(docs, [[(1, 2), (3, 4), (6, 7)], [], [(0, 1)]], 100)

    assert [(c.doc, c.start, c.end) for c in clauses] == [
        (0, 0, 3),
        (0, 3, 7),
        (0, 3, 7),
        (2, 0, 4),
    ]


def test_long_sentences_and_docs_without_sentences_are_cut():
    for doc in (make(10), make(10, [0])):
        clauses = make_clauses([doc], [[(i, i + 1) for i in range(10)]], 4)
        assert all(c.start <= c.predicate[0] < c.end and c.n_tokens <= 4 for c in clauses)
    # Where there are no sentence starts, the punctuation of the text decides.
    doc = Doc(VOCAB, words=[*"abc.defg"])
    assert make_clauses([doc], [[(5, 6)]], 6)[0][1:3] == (4, 8)


def test_a_predicate_ends_with_its_sentence():
    (clause,) = make_clauses([make(6, [0, 3])], [[(2, 5)]], 100)
    assert clause == Clause(0, 0, 3, (2, 3))


def test_rows_are_those_of_the_docs_put_end_to_end():
    clauses = [Clause(2, 1, 3, (2, 3)), Clause(0, 0, 2, (0, 1))]
    rows, marks = find_rows(clauses, [2, 0, 4])

    assert rows.tolist() == [3, 4, 0, 1]
    assert marks.tolist() == [False, True, True, False]


@given(st.lists(st.integers(1, 9)), st.integers(1, 12))
def test_batches_are_bounded_and_lose_nothing(sizes, most):
    clauses = [Clause(0, 0, size, (0, 1)) for size in sizes]
    batches = list(split_by_size(clauses, lambda c: c.n_tokens, most))

    assert [c for batch in batches for c in batch] == clauses
    assert all(len(b) == 1 or np.sum([c.n_tokens for c in b]) <= most for b in batches)
    # None could take the next one's first.
    assert all(sum(c.n_tokens for c in a) + b[0].n_tokens > most for a, b in pairwise(batches))
