"""Published formats, and the command that converts them."""

import catalogue
import pytest
import spacy
import srsly
from spacy.cli import app
from spacy.tokens import DocBin
from typer.testing import CliRunner

from spacy_elmo.registry import task_readers
from spacy_elmo.tasks.shared.annotations import read_tags

CONLL = """-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O
German JJ I-NP I-MISC
British JJ I-NP B-MISC
# NN I-NP O

Peter NNP I-NP I-PER

-DOCSTART- -X- O O

Rome NNP I-NP I-LOC
"""
LITBANK = """# one.tsv
the\tB-PER\tO\t
mother\tI-PER\tO\t
of\tI-PER\tO\t
Anna\tI-PER\tB-PER\t

# two.tsv
He\tB-PER\tO\t
"""
BANK = "0\tHe\tX\tX\t-\t-\t(ARG0*)\n1\tcame\tX\tX\tcome\tcome.01\t(V*)\n"
SST = "(3 (2 It) (4 (2 is) (4 (2 -LRB-) (4 good))))\n\n(2 (2 a) (2 b\u00a0c))\n"
SNLI = [
    {"sentence1": "A man.", "sentence2": "A dog.", "gold_label": "contradiction"},
    {"sentence1": "A man.", "sentence2": "He is.", "gold_label": "-"},
    {"premise": "A man.", "hypothesis": "He is.", "label": 0},
]


@pytest.fixture(autouse=True, scope="module")
def commands():
    spacy.registry.cli.get_all()


def read(tmp_path, name, content, **options):
    path = tmp_path / "data.txt"
    path.write_text(content, "utf-8")
    return list(task_readers.get(name)(spacy.blank("en"), path, **options))


def describe(spans):
    return [(span.start, span.end, span.label_) for span in spans]


def get_label(doc):
    (label,) = (label for label, value in doc.cats.items() if value)
    return label


@pytest.mark.parametrize(
    "tags, expected",
    [
        ("I-A I-A B-A O I-B", [(0, 2, "A"), (2, 3, "A"), (4, 5, "B")]),
        ("B-A I-A I-B O", [(0, 2, "A"), (2, 3, "B")]),
        ("S-A B-A I-A E-A O", [(0, 1, "A"), (1, 4, "A")]),
        ("U-A B-A L-A I-A", [(0, 1, "A"), (1, 3, "A"), (3, 4, "A")]),
        ("B-A-B I-A-B", [(0, 2, "A-B")]),
        ("", []),
    ],
)
def test_tags_of_all_schemes_are_read(tags, expected):
    assert read_tags(tags.split()) == expected


def test_conll2003_is_read_by_sentences_and_by_documents(tmp_path):
    docs = read(tmp_path, "conll2003", CONLL)
    assert [len(doc) for doc in docs] == [5, 1, 1]
    assert describe(docs[0].ents) == [(0, 1, "ORG"), (2, 3, "MISC"), (3, 4, "MISC")]

    docs = read(tmp_path, "conll2003", CONLL, joined=True)
    assert [len(doc) for doc in docs] == [6, 1]
    assert describe(docs[0].ents)[-1] == (5, 6, "PER")
    assert [len(sentence) for sentence in docs[0].sents] == [5, 1]
    assert [t.text for t in docs[0]][4] == "#"


def test_a_space_of_another_kind_is_part_of_a_word(tmp_path):
    lines = ["Er O", "zahlt  O", "10\u00a0000 B-MISC", "Euro\u3000 I-MISC"]
    for separated in (lines, ["\t".join(line.rsplit(maxsplit=1)) for line in lines[:3]]):
        (doc,) = read(tmp_path, "conll2003", "\n".join(separated))
        assert [token.text.strip() for token in doc][:3] == ["Er", "zahlt", "10\u00a0000"]
        assert doc.ents[0].start == 2


def test_numbers_instead_of_words_are_an_error(tmp_path):
    counted = "1\tRome\tB-LOC\n2\twins\tO\n\n1\tHi\tO\n"
    with pytest.raises(ValueError, match="EL197.*Line 1 .*the first column counts the words"):
        read(tmp_path, "conll2003", counted)


def test_nested_entities_are_spans(tmp_path):
    docs = read(tmp_path, "litbank_entities", LITBANK)
    assert describe(docs[0].spans["sc"]) == [(0, 4, "PER"), (3, 4, "PER")]
    assert describe(docs[1].spans["sc"]) == [(0, 1, "PER")]

    docs = read(tmp_path, "litbank_entities", LITBANK, joined=True, key="ents")
    assert [len(doc.spans["ents"]) for doc in docs] == [2, 1]


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, [("It is ( good", "positive"), ("a b\u00a0c", "neutral")]),
        ({"binary": True}, [("It is ( good", "positive")]),
        (
            {"binary": True, "phrases": True},
            [
                ("It is ( good", "positive"),
                ("is ( good", "positive"),
                ("( good", "positive"),
                ("good", "positive"),
            ],
        ),
    ],
)
def test_trees_are_read(tmp_path, options, expected):
    docs = read(tmp_path, "sst", SST, **options)
    assert [(" ".join(t.text for t in doc), get_label(doc)) for doc in docs] == expected
    assert all(len(doc.cats) == (2 if options else 5) for doc in docs)


@pytest.mark.parametrize("name", ["jsonl", "tsv"])
def test_pairs_are_read(tmp_path, name):
    if name == "jsonl":
        text = "\n".join(srsly.json_dumps(record) for record in SNLI)
    else:
        text = "label\tpremise\thypothesis\n2\tA man.\tA dog.\n-1\tA\tB\n0\tA man.\tHe is.\n"
    docs = read(tmp_path, "snli", text)

    assert [doc.text for doc in docs] == ["A man. A dog.", "A man. He is."]
    assert [get_label(doc) for doc in docs] == ["contradiction", "entailment"]
    assert [str(doc.spans["hypothesis"][0]) for doc in docs] == ["A dog.", "He is."]


def test_labelled_lines_are_read(tmp_path):
    docs = read(tmp_path, "labelled_lines", "pos\tso good .\n\nneg\tno\t!\n")

    assert [doc.cats for doc in docs] == [{"neg": 0, "pos": 1}, {"neg": 1, "pos": 0}]
    assert docs[1].text == "no\t!"


@pytest.mark.parametrize(
    "name, text, problem",
    [
        ("conll2003", "a\n", "Line 1.*'a' has no tag"),
        ("conll2003", "x O\n\na Q-PER\n", "Line 3.*'Q-PER' is not a tag"),
        ("litbank_entities", "a\tO\tO\nb\tO\n", "Line 2.*columns: 2, before it: 3"),
        ("sst", "(3 (2 It)", "not complete"),
        ("sst", "(7 It)", "'7' is not a rating"),
        ("sst", "It", "'It' is outside of the tree"),
        ("sst", "(3 It) x", "'x' is outside of the tree"),
        ("snli", '{"a": 1}\n{', "Line 1.*expected premise, hypothesis and label"),
        ("snli", '{"premise": "a", "hypothesis": "b", "label": "0"}\n{', "Line 2.*not JSON"),
        ("snli", "premise\thypothesis\tlabel\na\tb\tperhaps\n", "'perhaps' is not one of"),
        (
            "snli",
            '{"premise": "\\ud800", "hypothesis": "b", "label": "0"}',
            "Line 1.*surrogates not allowed",
        ),
        ("snli", '{"premise": "a", "sentence2": {"x": 1}, "label": 0}', "'hypothesis' is not text"),
        ("snli", "<!DOCTYPE html>", "Line 1.*nor names of columns: <!DOCTYPE html>, expected"),
        ("sst", "(3 It)\r(2 was)\r", r"Line 1.*ends with \\r alone"),
        ("litbank_entities", "\tO\tO\n", "Line 1.*has no word"),
        ("propbank_spans", "1\t\tRP\t-\t*\t*\n", "Line 1.*a word is empty"),
        ("labelled_lines", "pos good\n", "not a label, a tab and a text"),
        ("ontogum", "1\tIt\n", "Line 1.*columns: 2, expected 10"),
        ("ontogum", "1\tIt\t_\t_\t_\t_\t0\t_\t_\tEntity=1\n", "'1' is not a bracket"),
        ("litbank_coref", "a b c\n", "columns: 3, expected 5"),
        ("litbank_coref", "a\t0\t0\t\t_\n", "Line 1.*column 4, the word, is empty"),
        ("litbank_coref", "a 0 0 It (1\n\na 0 0 Sam 2)\n", "Line 3.*of 2 .* has no beginning"),
        ("litbank_coref", "a 0 0 It (1\n\na 0 0 Sam (2\n", "Line 3.*of 1, 2 have no end"),
        ("propbank_spans", "0\ta\tX\tX\t-\n", "Line 1.*columns of '0 a X X -': 5, expected 6"),
        ("propbank_spans", BANK.replace("\t(V*)", ""), "columns: 6, before it: 7"),
        ("propbank_spans", BANK.replace("(V*)", "(V*"), "Line 1.*is never closed"),
        ("propbank_spans", BANK.replace("(ARG0*)", "*)"), "closes a bracket"),
        ("propbank_spans", BANK.replace("(V*)", "*"), r"needs exactly one \(V"),
        ("propbank_spans", BANK.replace("(V*)", "B-V"), "'B-V' is not a cell"),
        ("conll2005", "He PRP\nran VBD\n", "no column of predicates"),
        ("conll2012_roles", "a b c\n", "columns of 'a b c': 3, expected 12"),
        ("annotations", '{"text": "a", "spans": [{"start": 0}]}', "no annotated text .*end"),
        ("annotations", '{"text": "a", "spans": [[0, 9, "A"]]}', "ends outside of the text"),
        ("annotations", "[]", "no annotated text .*expected an object"),
    ],
)
def test_other_lines_are_errors(tmp_path, name, text, problem):
    with pytest.raises(ValueError, match=f"EL197.*{problem}"):
        read(tmp_path, name, text)


ANNOTATIONS = """\
{"text": "Ann lives in Oslo.", "spans": [{"start": 0, "end": 3, "label": "PER"}], "cats": {"A": 1}}
{"text": "Bob!", "label": [[0, 2, "PER"]], "accept": ["B"], "options": [{"id": "A"}, {"id": "B"}]}
{"text": "No.", "spans": [{"start": 0, "end": 2, "label": "PER"}], "answer": "reject"}
{"text": "Fine.", "labels": ["B"]}
{"text": "Ham.", "label": "A", "answer": "reject"}
{"text": "Eve.", "entities": [[0, 3, "PER"]]}
"""


def test_annotations_of_tools_are_read_in_two_parts(tmp_path):
    docs = read(tmp_path, "annotations", ANNOTATIONS)
    names = [[(ent.text, ent.label_) for ent in doc.ents] for doc in docs]
    # What ends inside of a token takes all of it.
    assert names == [[("Ann", "PER")], [("Bob", "PER")], [], [], [("Eve", "PER")]]
    cats = [{"A": 1.0, "B": 0.0}, {"A": 0.0, "B": 1.0}, {"A": 0.0, "B": 1.0}, {"A": 0.0}, {}]
    assert [doc.cats for doc in docs] == cats

    texts = {
        p: [d.text for d in read(tmp_path, "annotations", ANNOTATIONS, part=p)]
        for p in ("train", "dev")
    }
    assert texts["dev"] == ["Eve."] and texts["train"] == [doc.text for doc in docs[:-1]]
    overlapping = '{"text": "New York", "label": [[0, 8, "A"], [4, 8, "B"]]}'
    (doc,) = read(tmp_path, "annotations", overlapping, key="sc")
    assert [span.text for span in doc.spans["sc"]] == ["New York", "York"]
    with pytest.raises(ValueError, match="EL197.*Line 1.*overlap.*spancat"):
        read(tmp_path, "annotations", overlapping)


@pytest.mark.parametrize("name", sorted(task_readers.get_all()))
def test_empty_files_have_no_docs(tmp_path, name):
    assert read(tmp_path, name, "\n \n") == []


def run(*arguments, exit_code=0):
    result = CliRunner().invoke(app, ["elmo", "convert-data", *map(str, arguments)])
    assert result.exit_code == exit_code, result.output
    return " ".join(result.output.replace("│", " ").split())


def test_the_command_writes_docs(tmp_path):
    (tmp_path / "x.tsv").write_text(LITBANK)
    output = tmp_path / "new" / "x.spacy"
    printed = run("litbank_entities", tmp_path / "x.tsv", output, "--joined", "--key", "ents")

    docs = list(DocBin().from_disk(output).get_docs(spacy.blank("en").vocab))
    assert [len(doc.spans["ents"]) for doc in docs] == [2, 1]
    assert "2 docs, 5 tokens; ents/PER 3" in printed


@pytest.mark.parametrize(
    "arguments, problem",
    [
        (["conl", "{}", "y"], "'conl': expected one of annotations"),
        (["sst", "{}", "y", "--phrase"], "No such option: --phrase"),
        (["snli", "{}", "y", "--x"], "No such option: --x"),
        (["squad", "{}", "y", "--negatives", "x"], "Invalid value for '--negatives'"),
        (["litbank_entities", "{}", "y", "--key"], "Option '--key' requires an argument"),
    ],
)
def test_mistakes_on_the_command_line_are_errors(tmp_path, arguments, problem):
    path = tmp_path / "x.txt"
    path.write_text("")
    printed = run(*(a.format(path) for a in arguments), exit_code=2)
    assert problem in printed


def test_a_wrong_file_leaves_the_output_as_it_was(tmp_path):
    (tmp_path / "x.txt").write_text("a\n")
    (tmp_path / "y.spacy").write_text("old")
    run("conll2003", tmp_path / "x.txt", tmp_path / "y.spacy", exit_code=1)

    assert (tmp_path / "y.spacy").read_text() == "old"
    (tmp_path / "x.txt").write_text("\n")
    told = run("conll2003", tmp_path / "x.txt", tmp_path / "y.spacy", exit_code=1)
    assert "Nothing was found" in told and "conll2003" in told
    assert (tmp_path / "y.spacy").read_text() == "old"


def read_help(*arguments):
    return run(*arguments, "--help")


@pytest.mark.parametrize("format", ["squad", "litbank_entities", "sst"])
def test_the_help_has_the_options_of_a_format(format):
    printed, reader = read_help(format), task_readers.get(format)

    assert f"One of: {', '.join(sorted(task_readers.get_all()))}" in printed
    assert f"{format}: Read " in printed
    for name in reader.__kwdefaults__:
        entry = reader.__doc__.partition(f"    {name} (")[2].partition("): ")[2]
        assert f"--{name}" in printed
        assert f"For {format}: {entry.splitlines()[0].rstrip('.')}" in printed


def test_the_help_has_formats_of_other_packages(monkeypatch):
    def read_mine(nlp, path, *, most_words: int = 3):
        return iter(())

    monkeypatch.setattr(catalogue, "REGISTRY", dict(catalogue.REGISTRY))
    task_readers.register("mine", func=read_mine)

    printed = read_help("mine", "in.txt", "--most-words", 4)
    assert "mine: " in printed and "--most-words" in printed
    assert "litbank_entities, mine, ontogum" in read_help()


def test_a_file_of_one_endless_document_is_told(tmp_path):
    """With --joined, a file without marks of documents is one doc."""
    (tmp_path / "train.txt").write_text("Sam B-PER\neats O\n\n" * 10_001)
    for joined in (False, True):
        command = [
            "elmo",
            "convert-data",
            "conll2003",
            tmp_path / "train.txt",
            tmp_path / "x.spacy",
        ]
        command += ["--joined"] * joined
        done = CliRunner().invoke(app, [str(part) for part in command])
        assert done.exit_code == 0
        told = " ".join(done.output.split())
        assert ("has 20,002 tokens" in told and "Omit `--joined`" in told) == joined
