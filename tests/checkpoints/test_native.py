"""Our own format: files of tensors, rounded matrices, damage, and atomic writes."""

import json
import os
import random

import pytest
import safetensors.torch
import torch

from spacy_elmo import load_embedder
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import TensorHeader
from spacy_elmo.checkpoints.allennlp import write_allennlp
from spacy_elmo.checkpoints.formats import CheckpointFiles, find_reader
from spacy_elmo.checkpoints.loaders import read_config
from spacy_elmo.checkpoints.native import read_meta, write_native
from spacy_elmo.checkpoints.tensors import (
    read_headers,
    read_metadata,
    read_tensors,
    restore_rows,
    round_rows,
    write_tensors,
)
from spacy_elmo.files import DIGESTS_FILE
from spacy_elmo.language_model.loading import collect_softmax, load_language_model
from spacy_elmo.language_model.softmax import make_softmax

from ..support.helpers import SHAPE, assert_close

SENTENCES = [["I", "like", "eggs"], ["Ham"]]
WORDS = ["<S>", "</S>", "<UNK>", "eggs", "ham", "höher"]
SOFTMAXES = {"full": {}, "sampled": {"n_samples": 3}, "adaptive": {"cutoffs": [4]}}


def make_model(kind="full", value=None, **changes):
    torch.manual_seed(0)
    bilm = BiLM(BiLMConfig(**{**SHAPE, **changes}))
    softmax = make_softmax(kind, SHAPE["width"] // 2, len(WORDS), **SOFTMAXES[kind])
    if value is not None:
        with torch.no_grad():
            for weight in (*bilm.parameters(), *softmax.parameters()):
                weight.fill_(value)
    return bilm, collect_softmax(softmax, kind, SOFTMAXES[kind], WORDS)


def write(folder, value=None, *, writer=write_native, kind="full", **changes):
    bilm, softmax = make_model(kind, value, **changes)
    writer(bilm, folder, softmax=softmax)
    return folder


def read_all(folder):
    return load_language_model(CheckpointFiles(folder))


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "model", kind="adaptive")


def edit_json(path, **changes):
    content = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({k: v for k, v in content.items() if v is not ...}))
    (path.parent / DIGESTS_FILE).unlink()


# Round trips


@pytest.mark.parametrize("dtype, atol", [(torch.float32, 0), (torch.float16, 0.01)])
def test_written_and_read_gives_the_same_vectors(tmp_path, toy_folder, dtype, atol):
    embedder = load_embedder(toy_folder)
    write_native(embedder.bilm, tmp_path / "ours", dtype=dtype)
    read = load_embedder(tmp_path / "ours")
    assert_close(read.embed(SENTENCES), embedder.embed(SENTENCES), atol)
    assert read.bilm.config == embedder.bilm.config


@pytest.mark.parametrize("writer", [write_native, write_allennlp])
def test_equal_models_give_equal_bytes(tmp_path, writer):
    a, b = (write(tmp_path / name, writer=writer) for name in "ab")
    names = {path.name for path in a.iterdir()}
    assert names == {*json.loads((a / DIGESTS_FILE).read_text()), DIGESTS_FILE}
    for name in names:
        assert (a / name).read_bytes() == (b / name).read_bytes()
    expected, _ = make_model()
    assert_close(
        [read_all(a).model.bilm.char_cnn.embedding.weight.detach()],
        [expected.char_cnn.embedding.weight.detach()],
        0,
    )
    (b / DIGESTS_FILE).unlink()
    assert read_all(b).vocabulary.words == WORDS


def test_meta_is_read(folder):
    assert read_meta(folder) == {}
    (folder / "meta.json").write_text('{"lang": "en"}')
    with pytest.raises(ValueError, match=r"EL104.*meta\.json"):
        read_meta(folder)
    (folder / DIGESTS_FILE).unlink()
    assert read_meta(folder) == {"lang": "en"}
    (folder / "meta.json").unlink()
    assert read_meta(folder) == {}


# Files of tensors

STATE = {"b": torch.arange(6.0).view(2, 3), "a": torch.tensor([1, 2]), "empty": torch.zeros(0, 3)}


def test_tensors_are_written_and_read(tmp_path):
    path = tmp_path / "a.safetensors"
    notes = {f"note {i}": f'"ä\n{i}' for i in range(20)}
    write_tensors(path, STATE, metadata=notes)
    assert read_headers(path)["b"] == TensorHeader((2, 3), "float32")
    assert read_headers(path)["a"] == TensorHeader((2,), "int64")
    assert read_metadata(path) == notes
    found = read_tensors(path)
    path.unlink()
    assert all(torch.equal(found[name], tensor) for name, tensor in STATE.items())


@pytest.mark.parametrize("dtype, name", [(torch.float16, "float16"), (torch.bfloat16, "bfloat16")])
def test_other_types_are_cast(tmp_path, dtype, name):
    write_tensors(tmp_path / "a", {"x": torch.tensor([0.5, 1.0])}, dtype)
    assert read_headers(tmp_path / "a")["x"].dtype == name
    assert read_tensors(tmp_path / "a")["x"].dtype == torch.float32


def test_infinite_numbers_are_refused_by_name(tmp_path):
    tensor = torch.tensor([[0.0, 1.0], [1e39, float("nan")]], dtype=torch.float64)
    safetensors.torch.save_file({"x": tensor}, tmp_path / "a")
    with pytest.raises(ValueError, match=r"EL106.*'x'.* 2 numbers.*\[1, 0\]"):
        read_tensors(tmp_path / "a")
    with pytest.raises(ValueError, match=r"'x' .*16 bits.*65536.* at \[1\].*--half"):
        write_tensors(tmp_path / "b", {"x": torch.tensor([1.0, 65536.0])}, torch.float16)
    assert not (tmp_path / "b").exists()


# Rounded matrices


@pytest.fixture
def state():
    rows = torch.tensor([1e-6, 1.0, 300.0, 0.0])
    return {"weight": torch.randn(4, 9) * rows[:, None], "bias": torch.randn(4), "ids": rows.int()}


def test_rounding_errors_are_at_most_half_a_scale(state):
    rounded = round_rows(state)
    assert rounded["weight"].dtype == torch.int8
    restored = restore_rows(rounded, "here")
    bound = state["weight"].abs().amax(1, keepdim=True) / 253
    assert bool(((restored["weight"] - state["weight"]).abs() <= bound).all())
    assert torch.equal(restored["bias"], state["bias"]) and restored.keys() == state.keys()
    assert torch.equal(round_rows(restored)["weight"], rounded["weight"])
    assert restore_rows(state, "here") == state


SCALES = {
    "no scale": {"weight.row_scale": None},
    "no matrix": {"weight": None},
    "floats": {"weight": torch.zeros(4, 9)},
    "too short": {"weight.row_scale": torch.ones(3)},
    "integers": {"weight.row_scale": torch.ones(4, dtype=torch.int8)},
    "a vector": {"weight": torch.ones(4, dtype=torch.int8)},
}


@pytest.mark.parametrize("change", SCALES.values(), ids=SCALES)
def test_rounded_matrices_need_their_scales(state, change):
    rounded = {**round_rows(state), **change}
    with pytest.raises(ValueError, match="EL103.*'here'.*'weight' has 8 bits"):
        restore_rows({name: t for name, t in rounded.items() if t is not None}, "here")


@pytest.mark.parametrize("kind", SOFTMAXES)
def test_a_rounded_checkpoint_gives_nearly_the_same(tmp_path, kind):
    bilm, softmax = make_model(kind)
    write_native(bilm, tmp_path / "a", softmax=softmax)
    write_native(bilm, tmp_path / "b", softmax=softmax, round_softmax=True, round_weights=True)
    exact, rounded = (read_all(tmp_path / name).model for name in "ab")
    hidden = torch.randn(5, SHAPE["width"] // 2)
    with torch.inference_mode():
        difference = exact.softmax.log_probs(hidden) - rounded.softmax.log_probs(hidden)
    assert 0 < float(difference.abs().max()) < 0.05
    found, expected = (load_embedder(tmp_path / name).embed(SENTENCES)[0] for name in "ba")
    assert 0 < abs(found - expected).max() < 0.05 * abs(expected).max()


# Bad shapes and weights

BAD_CONFIGS = {
    "text": ({"depth": "2"}, "depth = .*2.* expected an integer"),
    "null": ({"cell_width": None}, "cell_width = .*expected an integer"),
    "absurd": ({"depth": 10**6}, "depth = 1000000 .*from 1 to 100"),
    "unknown": ({"colour": 1}, "unknown keys: colour"),
    "missing": ({"skip_connections": ...}, "it has no skip_connections"),
}


@pytest.mark.parametrize("changes, match", BAD_CONFIGS.values(), ids=BAD_CONFIGS)
def test_bad_shapes_are_refused_by_key_and_value(folder, changes, match):
    edit_json(folder / "config.json", **changes)
    with pytest.raises(ValueError, match=rf"EL032.*config\.json.*{match}"):
        read_config(folder)


def test_configs_without_the_later_keys_are_read(folder):
    edit_json(folder / "config.json", n_words=..., vector_width=...)
    assert load_embedder(folder).bilm.config == BiLMConfig(**SHAPE)


LARGE = {
    "depth": {"depth": 100},
    "cells": {"cell_width": 20_000, "width": 10_000, "depth": 1},
    "words": {"input": "words", "n_words": 100_000_000},
}


@pytest.mark.parametrize("changes", LARGE.values(), ids=LARGE)
def test_a_small_file_of_a_large_shape_is_refused(folder, changes):
    edit_json(folder / "config.json", **changes)
    for load in (load_embedder, read_config):
        with pytest.raises(ValueError, match="EL020|EL021"):
            load(folder)


def test_a_softmax_of_another_size_is_refused(folder):
    path = folder / "softmax.safetensors"
    (folder / DIGESTS_FILE).unlink()
    state = safetensors.torch.load_file(path)
    for kind, settings, match in (
        ("adaptive", "{", "EL112"),
        ("adaptive", '{"colour": 1}', "EL112"),
        ("adaptive", '{"cutoffs": [4], "div_value": 1e-9}', "EL021"),
        ("theirs", "{}", "EL112.*'theirs'"),
    ):
        safetensors.torch.save_file(state, path, {"kind": kind, "settings": settings})
        with pytest.raises(ValueError, match=match):
            read_all(folder)


BAD_STATES = {
    "missing": ("bias", ..., "EL020.*char_cnn.projection.bias"),
    "unexpected": ("more", torch.zeros(2), "EL020.*Unexpected: char_cnn.projection.more"),
    "shape": ("bias", torch.zeros(3), r"EL021.*char_cnn.projection.bias.*\(3,\).*\(4,\)"),
    "integers": ("bias", torch.zeros(4, dtype=torch.int32), "EL021.*bias.*int32"),
}


@pytest.mark.parametrize("name, tensor, match", BAD_STATES.values(), ids=BAD_STATES)
def test_bad_weights_are_refused(folder, name, tensor, match):
    path = folder / "model.safetensors"
    state = {**safetensors.torch.load_file(path), f"char_cnn.projection.{name}": tensor}
    safetensors.torch.save_file({n: t for n, t in state.items() if t is not ...}, path)
    with pytest.raises(ValueError, match=match):
        read_config(folder)


@pytest.mark.parametrize("path", ["a\0b", "x" * 300, "/" + "y/" * 3000])
def test_impossible_paths_do_not_exist(path):
    with pytest.raises(ValueError, match="EL030"):
        load_embedder(path)
    with pytest.raises(ValueError, match="EL030"):
        load_embedder("options.json", path)


# Damage


def flip(content, rng):
    content = bytearray(content)
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(content)


@pytest.mark.parametrize("writer", [write_native, write_allennlp])
def test_damage_of_any_file_is_noticed(tmp_path, writer):
    folder = write(tmp_path / "model", writer=writer)
    rng = random.Random(0)
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        damaged = [b"", content[: len(content) // 2]]
        if path.name != DIGESTS_FILE:
            damaged += [flip(content, rng) for _ in range(8)]
        for changed in damaged:
            path.write_bytes(changed)
            with pytest.raises(ValueError, match=r"\[EL"):
                read_meta(folder)
                read_all(folder)
        path.unlink()
        if path.name not in ("meta.json", DIGESTS_FILE):
            with pytest.raises(ValueError, match=r"\[EL|one .hdf5 file"):
                read_all(folder)
        path.write_bytes(content)
    read_all(folder)


@pytest.mark.parametrize("writer", [write_native, write_allennlp])
def test_damage_without_digests_is_an_error_of_ours_or_other_numbers(tmp_path, writer):
    folder = write(tmp_path / "model", writer=writer)
    (folder / DIGESTS_FILE).unlink()
    rng = random.Random(1)
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for _ in range(10):
            # The head of a file describes its content.
            head = content[:1000]
            path.write_bytes(flip(head, rng) + content[1000:])
            try:
                read_all(folder)
            except ValueError as err:
                assert "[EL" in str(err) and len(str(err)) < 3000
        path.write_bytes(content)


@pytest.mark.parametrize("make, kind", [(os.mkfifo, "a pipe"), (os.mkdir, "a folder")])
def test_pipes_and_folders_are_not_read(folder, make, kind):
    (folder / "model.safetensors").unlink()
    make(folder / "model.safetensors")
    with pytest.raises(ValueError, match=rf"EL100.*model\.safetensors', but {kind}"):
        load_embedder(folder)


# Atomic writes


def read_value(folder):
    """The number that all weights have."""
    model, _, _ = read_all(folder)
    found = model.bilm.char_cnn.embedding.weight, model.softmax.weight
    (value,) = {float(number) for weight in found for number in weight.detach().flatten()}
    return value


def test_writing_replaces_a_checkpoint_and_nothing_else(folder, tmp_path):
    write(folder, depth=1)
    assert load_embedder(folder).bilm.config.depth == 1
    (tmp_path / "thesis").mkdir()
    with pytest.raises(ValueError, match="EL034.*thesis"):
        write(tmp_path / "thesis")
    (tmp_path / "new.previous").mkdir()
    with pytest.raises(ValueError, match="EL034.*new.previous"):
        write(tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "new.previous", "thesis"]


def test_readers_find_what_a_killed_writer_renamed(tmp_path):
    write(tmp_path / "model", 0.5).rename(tmp_path / "model.previous")
    files = CheckpointFiles(tmp_path / "model")
    assert find_reader(files).read_config(files).depth == 2
    assert read_value(files.path) == 0.5
    with pytest.raises(ValueError, match="EL034.*model.previous"):
        write(files.path, writer=write_allennlp)
    write(files.path)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_weights_that_cannot_be_written_are_refused(tmp_path):
    (tmp_path / "file").touch()
    for writer in (write_native, write_allennlp):
        with pytest.raises(ValueError, match="EL145.*file/model'"):
            write(tmp_path / "file" / "model", writer=writer)
        with pytest.raises(ValueError, match="EL106.*the model to write"):
            write(tmp_path / "model", float("nan"), writer=writer)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
