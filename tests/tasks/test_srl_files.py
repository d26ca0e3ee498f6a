"""Readers of semantic roles."""

import pytest
import spacy

from spacy_elmo.registry import task_readers
from spacy_elmo.tasks.srl.frames import read_frames
from spacy_elmo.tasks.srl.readers import read_brackets

from ..support.toy_tasks import read_roles

PROPBANK = """# sent_id = weblog-a-0001
0\tBush\tPROPN\tNNP\t-\t-\t(ARG0*)\t*
1\tcame\tVERB\tVBD\tcome\tcome.01\t(V*)\t*
2\tto\tPART\tTO\t-\t-\t(ARG2*\t*
3\tsit\tVERB\tVB\tsit\tsit.02\t*\t(V*
4\tdown\tADP\tRP\t-\t-\t*)\t*)
5\t#\tSYM\tNN\t-\t-\t*\t*

# sent_id = weblog-a-0002
0\tYes\tINTJ\tUH\t-\t-

# sent_id = weblog-b-0001
0\tNo\tINTJ\tUH\t-\t-
"""
CONLL2005 = """The DT (S1(S(NP* - - (A0* *
cat NN *) - - *) *
began VBD (VP* 01 begin (V* *
# VBG (VP*)) 01 eat *V) (V*)
. . *)) - - * *

Yes UH (S1*) - -
"""
CONLL2012 = """#begin document (bc/x); part 000
bc/x 0 0 He PRP (TOP(S(NP*) - - - Speaker * (ARG0*) (1)
bc/x 0 1 ran VBD (VP*)) run 01 1 Speaker * (V*) -

bc/x 0 0 Yes UH (TOP*) - - - Speaker * -

#end document
#begin document (bc/x); part 001
bc/x 1 0 No UH (TOP*) - - - Speaker * -

#end document
"""
FRAMES = [{"V": (1, 2), "ARG0": (0, 1), "ARG2": (2, 5)}, {"V": (3, 5)}]


@pytest.fixture(autouse=True, scope="module")
def extension():
    spacy.registry.cli.get_all()


def read(tmp_path, name, content, **options):
    path = tmp_path / "data.txt"
    path.write_text(content, "utf-8")
    return list(task_readers.get(name)(spacy.blank("en"), path, **options))


def test_propbank_is_read_by_sentences_and_by_documents(tmp_path):
    docs = read(tmp_path, "propbank_spans", PROPBANK)
    assert [len(doc) for doc in docs] == [6, 1, 1]
    assert read_roles(docs[0]) == FRAMES
    # Without predicates is not without annotation.
    assert all("srl_predicates" in doc.spans for doc in docs)

    docs = read(tmp_path, "propbank_spans", "\n\n".join(PROPBANK.split("\n\n")[1::-1]), joined=True)
    assert [len(doc) for doc in docs] == [7]
    assert read_roles(docs[0])[0] == {k: (a + 1, b + 1) for k, (a, b) in FRAMES[0].items()}
    assert [len(sentence) for sentence in docs[0].sents] == [1, 6]
    assert len(read(tmp_path, "propbank_spans", PROPBANK, joined=True)) == 2


def test_conll2005_is_read(tmp_path):
    docs = read(tmp_path, "conll2005", CONLL2005)

    assert [t.text for t in docs[0]] == ["The", "cat", "began", "#", "."]
    assert read_roles(docs[0]) == [{"V": (2, 4), "A0": (0, 2)}, {"V": (3, 4)}]
    assert read_roles(docs[1]) == []


def test_conll2012_is_read_by_sentences_and_by_parts(tmp_path):
    docs = read(tmp_path, "conll2012_roles", CONLL2012)
    assert [doc.text.strip() for doc in docs] == ["He ran", "Yes", "No"]
    assert [read_roles(doc) for doc in docs] == [[{"V": (1, 2), "ARG0": (0, 1)}], [], []]

    docs = read(tmp_path, "conll2012_roles", CONLL2012, joined=True)
    assert [doc.text.strip() for doc in docs] == ["He ran Yes", "No"]


@pytest.mark.parametrize(
    "cells, expected",
    [
        ("(V*)", [(0, 1, "V")]),
        ("(A0*A0) (V*V)", [(0, 1, "A0"), (1, 2, "V")]),
        ("(A1*(V*", None),
        ("(A1(V* *)) ", [(0, 2, "A1"), (0, 2, "V")]),
        ("(A1(A0*) *) (V*)", [(0, 1, "A0"), (0, 2, "A1"), (2, 3, "V")]),
    ],
)
def test_brackets_are_read(cells, expected):
    if expected is None:
        with pytest.raises(ValueError, match="is not a cell"):
            read_brackets(cells.split())
    else:
        assert read_brackets(cells.split()) == expected


def test_the_published_file_is_read_whole(shared):
    path = shared / "data/tasks/srl/propbank_ewt_spans/ewt-propbank-dev.gold_conll.xz"
    docs = list(task_readers.get("propbank_spans")(spacy.blank("en"), path))

    assert (len(docs), sum(len(read_frames(doc)) for doc in docs)) == (1974, 4977)
    assert sum(len(frame.arguments) for doc in docs for frame in read_frames(doc)) == 9600
