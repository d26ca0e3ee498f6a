"""docs/tasks.md: its code runs, its configs are whole, its tables complete."""

import shlex

import pytest
import spacy
from spacy.cli import app
from spacy.tokens import DocBin
from thinc.api import Config
from typer.testing import CliRunner

from spacy_elmo.registry import task_readers

from ..support.pages import blocks, read_page
from ..support.toy_task_data import make_squad

PAGE = read_page("docs/tasks.md")
DATA = {
    "eng.train": "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\n",
    "train.txt": "(3 (2 It) (4 (2 is) (4 good)))\n",
    "dev-v1.1.json": make_squad("Sam gave Ann ham."),
    "xquad.en.json": make_squad("Ann gave Sam ham."),
    "ontogum-train.conllu": "1\tSam\tSam\tPROPN\tNNP\t_\t0\troot\t_\tEntity=(1)\n",
    "snli_1.0_train.jsonl": '{"sentence1": "a", "sentence2": "b", "gold_label": "neutral"}\n',
}


def find_blocks(language):
    return blocks("docs/tasks.md", language)


def test_python_blocks_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in find_blocks("python"):
        exec(code, names)
        if "entailment" in names and "srl" not in names:
            assert [*names["doc"].cats] == ["entailment", "contradiction"]

    printed = capsys.readouterr().out
    assert "'entailment': " in printed
    assert "gave [('ARG0', Ann), ('ARG2', Bob), ('ARG1', the book)]\n1.0\n1.0\n" in printed
    assert names["asked"]._.qa_answer is not None and len(names["asked"]._.qa_answers) == 5
    assert "['Sam', 'he']" in printed and names["chains"].count("1 Sam") == 2


@pytest.mark.parametrize("code", find_blocks("ini"))
def test_configs_are_whole(code):
    nlp = spacy.util.load_model_from_config(Config().from_str(code), auto_fill=True, validate=True)

    (name,) = (name for name in nlp.pipe_names if name not in ("elmo", "sentencizer"))
    assert nlp.get_pipe("elmo").listening_components == [name]
    # A text that is no pair needs sentences, too.
    assert ("sentence_spans" in code) == ("sentencizer" in nlp.pipe_names)


def test_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spacy.registry.cli.get_all()
    for name, content in DATA.items():
        (tmp_path / name).write_text(content)
    commands = "".join(find_blocks("bash")).splitlines()
    for command in commands:
        result = CliRunner().invoke(app, shlex.split(command)[3:])
        assert result.exit_code == 0, result.output

    assert len(DocBin().from_disk(tmp_path / "sst" / "train.spacy")) == 5
    assert len(commands) == 8


@pytest.mark.parametrize("name", sorted(task_readers.get_all()))
def test_formats_are_in_the_table(name):
    assert f"\n| `{name}` |" in PAGE
