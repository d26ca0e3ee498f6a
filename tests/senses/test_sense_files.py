"""Files of sense-annotated sentences and WordNet, which may have any content."""

import json

import pytest

from spacy_elmo.senses.annotated import read_sentences
from spacy_elmo.senses.inventory import Inventory
from spacy_elmo.senses.sense_training import require_docs
from spacy_elmo.senses.wordnet import read_wordnet

from ..support.toy_wordnet import make_lines

LINE = {"tokens": ["the", "bank"], "instances": [[1, "bank", "NN", ["bank%1:00:00::"]]]}


@pytest.mark.parametrize(
    "changes, problem",
    [
        ({"tokens": "the bank"}, "no list of words"),
        ({"instances": {}}, 'no list in "instances"'),
        ({"instances": [[-1, "bank", "NN", ["x"]]]}, "-1 is not the index"),
        ({"instances": [[True, "bank", "NN", ["x"]]]}, "True is not the index"),
        ({"instances": [[1, None, "NN", ["x"]]]}, "is not an instance"),
        ({"instances": [[1, "bank", "NN", "x"]]}, "is not an instance"),
        ({"instances": [[1, "bank", "NN"]]}, "is not an instance"),
    ],
    ids=str,
)
def test_sentences_are_what_they_should_be(tmp_path, changes, problem):
    path = tmp_path / "x.jsonl"
    path.write_text(f"{json.dumps(LINE)}\n{json.dumps({**LINE, **changes})}\n")
    with pytest.raises(ValueError, match=f"EL197|{problem}") as info:
        list(read_sentences(path))
    assert "Line 2" in str(info.value) and problem in str(info.value)


@pytest.mark.parametrize("content", ["[]", "7", "[" * 100_000], ids=["list", "number", "nested"])
def test_lines_that_are_no_objects(tmp_path, content):
    (tmp_path / "x.jsonl").write_text(content)
    with pytest.raises(ValueError, match="EL197.*Line 1 "):
        list(read_sentences(tmp_path / "x.jsonl"))


def test_a_sentence_without_an_id_is_a_doc(tmp_path):
    path = tmp_path / "x.jsonl"
    line = '"tokens": ["a"], "instances": []}\n'
    path.write_text("{" + line + '{"id": null, ' + line + '{"id": "b.1", ' + line)
    assert len({sentence.doc for sentence in read_sentences(path)}) == 3


def test_too_few_docs_are_told_before_the_work(sense_corpus, tmp_path):
    require_docs(read_sentences(sense_corpus))
    path = tmp_path / "x.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in make_lines(9)))
    with pytest.raises(ValueError, match="EL058.*docs \\(9\\)"):
        require_docs(read_sentences(path))


def test_a_damaged_wordnet_is_told(wordnet_folder):
    for path in sorted(wordnet_folder.iterdir()):
        content = path.read_bytes()
        for damaged in (b"", content[:40], b"\xff" + content, content.replace(b" ", b"x")):
            path.write_bytes(damaged)
            try:
                assert isinstance(read_wordnet(wordnet_folder), Inventory)
            except ValueError as err:
                assert "[EL103]" in str(err)
        path.write_bytes(content)
