"""`spacy elmo train-senses`."""

import json
import subprocess
import sys

import pytest
import srsly
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.native import write_native

from ..test_senses import make_lines
from ..toy_wordnet import RIVER, write_wordnet
from ..util import SHAPE
from .test_commands import run


@pytest.fixture
def folder(tmp_path):
    return write_wordnet(tmp_path / "dict")


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "senses.jsonl"
    srsly.write_jsonl(path, make_lines())
    return path


def test_the_command_trains_measures_and_saves(folder, corpus, tmp_path):
    torch.manual_seed(0)
    write_native(BiLM(BiLMConfig(**SHAPE)), tmp_path / "weights")
    output, result = tmp_path / "nlp", tmp_path / "x.json"

    printed = run(
        "elmo", "train-senses", corpus, folder, output, "--weights", tmp_path / "weights",
        "--test", corpus, "--json", result, "--title", "toy",
    )  # fmt: skip

    assert "nearest, layer 1" in printed and "100.0%" in printed
    assert json.loads(result.read_text())["experiment"] == "senses"
    # In another process: the entry point, and nothing from here.
    code = "import spacy, sys; print(spacy.load(sys.argv[1])('the river bank')[2]._.sense)"
    command = [sys.executable, "-c", code, str(output)]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    assert found.stdout.strip() == RIVER


def test_the_command_says_what_is_wrong(folder, corpus, tmp_path):
    output = tmp_path / "nlp"

    assert "EL068" in run("elmo", "train-senses", corpus, tmp_path, output, exit_code=1)
    (tmp_path / "x.jsonl").write_text("no JSON")
    assert "EL069" in run("elmo", "train-senses", tmp_path / "x.jsonl", folder, output, exit_code=1)
    assert not output.exists()
