"""`spacy elmo train-senses`."""

import json
import subprocess
import sys

from ..helpers import hash_of
from ..toy_wordnet import RIVER
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


def test_the_command_says_what_is_wrong(wordnet_folder, sense_corpus, tmp_path):
    output = tmp_path / "nlp"

    assert "EL068" in run("elmo", "train-senses", sense_corpus, tmp_path, output, exit_code=1)
    bad = tmp_path / "x.jsonl"
    bad.write_text("no JSON")
    assert "EL069" in run("elmo", "train-senses", bad, wordnet_folder, output, exit_code=1)
    assert not output.exists()
