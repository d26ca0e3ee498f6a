"""`spacy elmo train-senses`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
from spacy.language import Language

from spacy_elmo.senses import wordnet

from ..support.helpers import hash_of
from ..support.toy_wordnet import RIVER
from .test_commands import run


def test_the_command_trains_measures_and_saves(wordnet_folder, sense_corpus, weights, tmp_path):
    output, result = tmp_path / "nlp", tmp_path / "x.json"

    printed = run(
        "elmo", "train-senses", sense_corpus, wordnet_folder, output, "--weights", weights,
        "--test", sense_corpus, "--json", result, "--title", "toy",
    )  # fmt: skip

    assert "nearest, LSTM 1" in printed and "100.0%" in printed
    written = json.loads(result.read_text())
    assert written["experiment"] == "senses"
    assert written["seconds"] > 0 and written["biLM"] == hash_of(weights)
    # In another process: the entry point, and nothing from here.
    code = "import spacy, sys; print(spacy.load(sys.argv[1])('the river bank')[2]._.sense)"
    command = [sys.executable, "-c", code, str(output)]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    assert found.stdout.strip() == RIVER


@pytest.fixture
def no_wordnet(monkeypatch):
    """Reading WordNet takes a minute: nothing that can be told before may wait for it."""

    def read(folder):
        raise AssertionError("WordNet was read")

    monkeypatch.setattr(wordnet, "read_wordnet", read)


def test_mistakes_are_told_before_the_work(wordnet_folder, sense_corpus, tmp_path, no_wordnet):
    def train(*arguments, exit_code=1, corpus=sense_corpus, output=tmp_path / "nlp"):
        command = ["elmo", "train-senses", corpus, wordnet_folder, output, *arguments]
        return run(*command, exit_code=exit_code)

    lines = sense_corpus.read_text().splitlines(keepends=True)
    for text, code in (("", "EL197"), ("\n", "EL197"), (lines[0], "EL058")):
        (tmp_path / "bad.jsonl").write_text(text)
        assert code in train(corpus=tmp_path / "bad.jsonl")
    (tmp_path / "bad.jsonl").write_text("".join([*lines, "{}"]))
    assert "EL197" in train(corpus=tmp_path / "bad.jsonl")
    assert "EL197" in train("--test", tmp_path / "bad.jsonl")
    assert "EL161" in train("--lang", "zzz")
    assert "EL030" in train("--weights", tmp_path / "nowhere")
    assert "EL145" in train("--json", "/proc/x.json")
    assert "EL145" in train(output="/proc/x/nlp")
    assert "EL141" in train(output=sense_corpus)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    assert "thesis.tex" in train(output=tmp_path / "mine")
    assert not (tmp_path / "nlp").exists()


def test_a_pipeline_is_replaced_whole(wordnet_folder, sense_corpus, weights, tmp_path, monkeypatch):
    output = tmp_path / "nlp"
    spacy.blank("en").to_disk(output)
    command = ["elmo", "train-senses", sense_corpus, wordnet_folder, output, "--weights", weights]
    to_disk = Language.to_disk

    def fill_disk(nlp, path, **settings):
        to_disk(nlp, path, **settings)
        next(Path(path).rglob("vocab")).rename(Path(path) / "x")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Language, "to_disk", fill_disk)
    printed = run(*command, exit_code=1)
    # The numbers are not lost, nor is the old pipeline.
    assert "EL145" in printed and "nearest, LSTM 1" in printed
    assert spacy.load(output).pipe_names == []
    assert not list(tmp_path.glob("nlp.*"))

    monkeypatch.undo()
    run(*command)
    assert spacy.load(output).pipe_names == ["elmo", "elmo_senses"]
    # With a file of somebody's in it, it is left alone.
    (output / "notes.txt").touch()
    assert "notes.txt" in run(*command, exit_code=1)
