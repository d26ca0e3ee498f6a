"""`spacy elmo convert` and `init-config` with damaged files and full disks."""

import errno
import re

import pytest

from spacy_elmo import load_embedder
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.native import read_meta, write_native

from ..support.golden import WEIGHTS
from ..support.helpers import SHAPE, assert_close
from .test_commands import run


@pytest.fixture
def folder(tmp_path):
    write_native(BiLM(BiLMConfig(**SHAPE)), tmp_path / "model", meta={"lang": "en"})
    return tmp_path / "model"


def full_disk(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("format", ["native", "allennlp"])
def test_a_full_disk_is_an_error_and_leaves_nothing(folder, tmp_path, monkeypatch, format):
    monkeypatch.setattr("spacy_elmo.checkpoints.native.write_digests", full_disk)
    output = run("elmo", "convert", folder, tmp_path / "out", "--to", format, exit_code=1)
    assert "[EL145]" in output and "No space left on device" in output
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_convert_replaces_a_folder_by_itself(folder, monkeypatch):
    expected = load_embedder(folder).embed([["eggs"]])
    monkeypatch.chdir(folder)
    assert "--force" in run("elmo", "convert", ".", ".", exit_code=1)
    printed = run("elmo", "convert", ".", ".", "--force")
    assert "BiLMConfig" not in printed and "shape of the biLM" in printed
    shape = dict(re.split(r"  +", line.rstrip(), maxsplit=1) for line in printed.splitlines()[3:18])
    config = load_embedder(folder).bilm.config
    assert shape["cell width"] == str(config.cell_width) and shape["depth"] == str(config.depth)
    assert shape["filters"] == " ".join(f"{w}:{n}" for w, n in config.filters)
    assert_close(load_embedder(folder).embed([["eggs"]]), expected, atol=0)
    assert read_meta(folder) == {"lang": "en"}


def test_convert_rounds_all_weights(tmp_path):
    run("elmo", "convert", "en_small", tmp_path / "out", "--round-weights", "--round-softmax")
    size = (tmp_path / "out" / "model.safetensors").stat().st_size
    assert size < 0.6 * (WEIGHTS / "model.safetensors").stat().st_size
    found, expected = (load_embedder(f).embed([["eggs"]])[0] for f in (tmp_path / "out", WEIGHTS))
    assert_close(found, expected, atol=0.1)


def test_convert_removes_nothing_but_weights(folder, tmp_path):
    output = tmp_path / "out"
    run("elmo", "convert", folder, output)
    (output / ".DS_Store").touch()
    run("elmo", "convert", folder, output, "--force")
    (output / "notes.md").write_text("mine")
    (output / "data").mkdir()
    printed = run("elmo", "convert", folder, output, "--force", exit_code=1)
    assert "data, notes.md" in printed
    assert (output / "notes.md").read_text() == "mine"
