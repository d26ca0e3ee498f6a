"""README's code runs, and its tables are complete."""

import inspect
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
import srsly
from spacy.tokens import DocBin

from spacy_elmo.pipeline.architectures import build_elmo_v2
from spacy_elmo.pipeline.elmo import make_elmo
from spacy_elmo.pipeline.presets import PRESETS

from .support.toy_corpora import make_docs
from .support.toy_wordnet import make_lines, write_wordnet
from .test_registry import NAMES

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```([\w ]+)\n(.*?)```", README, flags=re.DOTALL)


def blocks(language):
    return [code for name, code in BLOCKS if name == language]


@pytest.fixture
def folder(tmp_path, toy_folder, monkeypatch):
    """A working directory in which README's path exists."""
    (tmp_path / "path" / "to").mkdir(parents=True)
    shutil.copytree(toy_folder, tmp_path / "path" / "to" / "weights")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_python_blocks_run_one_after_the_other(folder, capsys):
    names = {}
    for code in blocks("python"):
        exec(code, names)

    assert "(9, 256)" in capsys.readouterr().out
    assert (folder / "pipeline" / "config.cfg").exists()


@pytest.mark.slow
def test_commands_run_one_after_the_other(folder):
    for name in ("text", "heldout"):
        (folder / name).mkdir()
        (folder / name / "x.txt").write_text("I like green eggs. The Bank does not!\n" * 30)
    (folder / "sentences.txt").write_text("I like green eggs .\n" * 30)
    write_wordnet(folder / "wordnet/dict")
    for name in ("semcor", "held_out"):
        srsly.write_jsonl(folder / f"{name}.jsonl", make_lines())
    (folder / "corpus").mkdir()
    for i, name in enumerate(("train", "dev", "test")):
        DocBin(docs=make_docs(20, i)).to_disk(folder / f"corpus/{name}.spacy")
    commands = "".join(blocks("bash")).splitlines()
    ours = [c for c in commands if c.startswith("python -m spacy") and " train " not in c]
    assert len(ours) == 15
    quick = {"experiment": ["--max-steps", "2", "--seeds", "0"]}
    for command in ours:
        words = [sys.executable, *shlex.split(command)[1:]]
        words += quick.get(words[4], [])
        subprocess.run(words, check=True, capture_output=True, cwd=folder)

    assert "ElmoTok2Vec" in (folder / "config.cfg").read_text()
    assert (folder / "output" / "model-best" / "softmax.safetensors").exists()
    assert "Where to put ELMo" in (folder / "report.md").read_text("utf-8")
    names = {"spacy": spacy}
    for code in blocks("python skip"):
        exec(code, names)
    assert names["doc"][4]._.sense is not None


@pytest.mark.parametrize("function", [build_elmo_v2, make_elmo])
def test_settings_are_in_the_tables(function):
    settings = set(inspect.signature(function).parameters) - {"nlp", "name", "model"}

    assert {name for name in settings if f"`{name}`" not in README} == set()


@pytest.mark.parametrize("name", [*PRESETS, *NAMES["spacy_architectures"], *NAMES["spacy_misc"]])
def test_names_are_mentioned(name):
    assert name.removeprefix("spacy-elmo.") in README
