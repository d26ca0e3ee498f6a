"""What is read for a predicate."""

import spacy
from spacy.tokens import Doc

from spacy_elmo.tasks.srl.network import Clause, find_rows, make_clauses

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
