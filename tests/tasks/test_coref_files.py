"""Readers of published coreference, and the corpus of whole documents."""

import pytest
import spacy
from spacy.tokens import Doc

from spacy_elmo.registry import task_readers
from spacy_elmo.tasks.coref.clusters import find_groups, get_chains, set_clusters

from ..support.helpers import SHARED

CONLLU = """# newdoc id = one
# text = Don't like Sam's ham, Sam.
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\tlike\tlike\tVERB\tVB\t_\t0\troot\t_\tMSeg=x|y
4-5\tSam's\t_\t_\t_\t_\t_\t_\t_\t_
4\tSam\tSam\tPROPN\tNNP\t_\t6\tposs\t_\tEntity=(2(1
5\t's\t's\tPART\tPOS\t_\t4\tcase\t_\tEntity=1)
6\tham\tham\tNOUN\tNN\t_\t3\tobj\t_\tEntity=2)|SpaceAfter=No
7\t,\t,\tPUNCT\t,\t_\t3\tpunct\t_\t_
8\tSam\tSam\tPROPN\tNNP\t_\t3\tvocative\t_\tEntity=(1)|SpaceAfter=No
9\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

1\tIt\tit\tPRON\tPRP\t_\t0\troot\t_\tEntity=(2)
1.1\tis\tbe\tAUX\tVBZ\t_\t_\t_\t_\t_

# newdoc id = two
1\tNo\tno\tINTJ\tUH\t_\t0\troot\t_\t_
"""
COLUMNS = """#begin document (one); part 000
one\t0\t0\t#\t_\t(1|(2
one\t0\t1\tSam\t_\t2)|(1)|(0)
one\t0\t2\t-LRB-\t_\t1)

one\t0\t0\tIt\t_\t
#end document
#begin document (one); part 001
one   1   0   Sam   -   (4)
#end document
"""


def read(tmp_path, name, content):
    path = tmp_path / "data.txt"
    path.write_text(content, "utf-8")
    return list(task_readers.get(name)(spacy.blank("en"), path))


def describe(doc):
    return [[(m.start, m.end) for m in chain] for chain in get_chains(doc)]


def test_conllu_is_read_by_documents(tmp_path):
    doc, other = read(tmp_path, "ontogum", CONLLU)

    assert doc.text == "Don't like Sam's ham, Sam. It "
    assert describe(doc) == [[(3, 5), (7, 8)], [(3, 6), (9, 10)]]
    assert [sentence.text for sentence in doc.sents] == ["Don't like Sam's ham, Sam.", "It"]
    assert [t.head.text for t in doc][:6] == ["like", "like", "like", "ham", "Sam", "like"]
    assert (doc[5].tag_, doc[5].pos_, doc[5].lemma_, doc[5].dep_) == ("NN", "NOUN", "ham", "obj")
    # It says that there is nothing, which is not to say nothing.
    assert describe(other) == [] and find_groups(other) == ["coref_clusters_1"]


@pytest.mark.parametrize("name", ["litbank_coref", "conll2012_coref"])
def test_columns_are_read_by_documents(tmp_path, name):
    doc, part = read(tmp_path, name, COLUMNS)

    assert [t.text for t in doc] == ["#", "Sam", "(", "It"]
    assert describe(doc) == [[(0, 2)], [(0, 3), (1, 2)], [(1, 2)]]
    assert [len(sentence) for sentence in doc.sents] == [3, 1]
    assert describe(part) == [[(0, 1)]]


@pytest.mark.parametrize(
    "pos, heads, problem",
    [
        ("X", "2", "Line 1 .*a word has the head 2 of 1 word\\b"),
        ("X", "²", "Line 2 .*'²' is not the number of a head"),
        ("THING", "0", "Line 1 .*THING"),
        ("X", "032", "heads of 2 words lead into a circle"),
    ],
)
def test_impossible_parses_are_errors(tmp_path, pos, heads, problem):
    lines = [f"{i}\tx\tx\t{pos}\tX\t_\t{h}\tdep\t_\t_\n" for i, h in enumerate(heads, 1)]
    with pytest.raises(ValueError, match=f"EL197.*{problem}"):
        read(tmp_path, "ontogum", "".join(["# newdoc\n", *lines]))


def make_mentions(*entities):
    lines = [
        f"{i}\tx\t_\t_\t_\t_\t{int(i > 1)}\t_\t_\t{entity}\n"
        for i, entity in enumerate(entities, start=1)
    ]
    return "# newdoc\n" + "".join(lines)


def test_a_mention_in_parts_is_one(tmp_path):
    text = make_mentions(
        "Entity=(e1[1/2]-person",
        "_",
        "Entity=e1[1/2])(e2)",
        "Entity=(e1[2/2]-person)",
        "Entity=(e1)",
    )
    (doc,) = read(tmp_path, "ontogum", text)
    assert describe(doc) == [[(0, 4), (4, 5)], [(2, 3)]]

    with pytest.raises(ValueError, match="EL197.*mentions of e1 have no end"):
        read(tmp_path, "ontogum", make_mentions("Entity=(e1[1/2])", "_"))


def test_a_treebank_without_coreference_is_refused(tmp_path):
    """It would teach that nothing refers to anything."""
    with pytest.raises(ValueError, match="EL197.*Line 3 .*no word has `Entity=`"):
        read(tmp_path, "ontogum", make_mentions("_", "SpaceAfter=No"))


def count(docs):
    chains = [chain for doc in docs for chain in get_chains(doc)]
    n_sentences = sum(len(list(doc.sents)) for doc in docs)
    return len(docs), n_sentences, sum(map(len, docs)), sum(map(len, chains)), len(chains)


# The numbers of the READMEs that came with the data; LitBank's count no sentences and clusters.
@pytest.mark.parametrize(
    "name, path, expected",
    [
        ("ontogum", "ontogum/ontogum-dev.conllu.xz", (18, 693, 16241, 1962, 466)),
        ("litbank_coref", "litbank/litbank-dev.conll.xz", (10, None, 21018, 2842, None)),
    ],
)
def test_the_published_files_are_read_whole(name, path, expected):
    path = SHARED / "data" / "tasks" / "coref" / path
    if not path.is_file():
        pytest.skip("needs ../shared")
    counts = count(list(task_readers.get(name)(spacy.blank("en"), path)))
    assert [n for n, other in zip(counts, expected) if other] == [n for n in expected if n]


def test_groups_are_numbered_and_replaced():
    doc = Doc(spacy.blank("en").vocab, words=["a", "b", "c"])
    doc.spans["coref_clusters_10"] = [doc[0:1]]
    doc.spans["coref_clusters_heads"] = [doc[0:1]]
    set_clusters(doc, [[(2, 3), (1, 2)], [(0, 2), (0, 3)]])

    assert [*doc.spans] == ["coref_clusters_heads", "coref_clusters_1", "coref_clusters_2"]
    assert describe(doc) == [[(0, 2), (0, 3)], [(1, 2), (2, 3)]]
    set_clusters(doc, [[(0, 1)]] * 11, "x")
    assert find_groups(doc, "x")[-2:] == ["x_10", "x_11"]
