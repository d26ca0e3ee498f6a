"""Our own folder: written, read, and made by strangers."""

import json
import os

import pytest
import safetensors.torch
import torch

from spacy_elmo import load_embedder
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import load_weights
from spacy_elmo.checkpoints.formats import CheckpointFiles
from spacy_elmo.checkpoints.loaders import read_config
from spacy_elmo.checkpoints.native import read_meta, write_native
from spacy_elmo.language_model.loading import collect_softmax, load_language_model
from spacy_elmo.language_model.softmax import make_softmax

from ..support.helpers import SHAPE, assert_close
from ..support.limits import refuse_limited

SENTENCES = [["I", "like", "eggs"], ["Ham"]]
WORDS = ["<S>", "</S>", "<UNK>", "eggs", "ham", "I"]


PARTS = ("hidden", "cell")


@pytest.fixture
def folder(tmp_path):
    write_native(BiLM(BiLMConfig(**SHAPE)), tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def lm_folder(tmp_path):
    """The same with an adaptive softmax."""
    settings = {"cutoffs": [4]}
    softmax = collect_softmax(
        make_softmax("adaptive", 4, 6, **settings), "adaptive", settings, WORDS
    )
    write_native(BiLM(BiLMConfig(**SHAPE)), tmp_path / "lm", softmax=softmax)
    return tmp_path / "lm"


def edit(folder, change):
    path = folder / "model.safetensors"
    state = safetensors.torch.load_file(path)
    change(state)
    safetensors.torch.save_file(state, path)


@pytest.mark.parametrize("dtype, atol", [(torch.float32, 0), (torch.float16, 0.01)])
def test_written_and_read_gives_the_same_vectors(tmp_path, toy_folder, dtype, atol):
    embedder = load_embedder(toy_folder)
    write_native(embedder.bilm, tmp_path / "ours", dtype=dtype)

    read = load_embedder(tmp_path / "ours")

    assert_close(read.embed(SENTENCES), embedder.embed(SENTENCES), atol)
    assert read.bilm.config == embedder.bilm.config


def test_writing_replaces_a_checkpoint_and_nothing_else(folder, tmp_path):
    other = BiLM(BiLMConfig(**{**SHAPE, "depth": 1}))
    write_native(other, folder)
    assert load_embedder(folder).bilm.config.depth == 1

    (tmp_path / "thesis").mkdir()
    with pytest.raises(ValueError, match="EL034.*thesis"):
        write_native(other, tmp_path / "thesis")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "thesis"]


def test_bad_json_is_refused(folder):
    for text in ("{", '{"width": 8, "colour": 1}'):
        (folder / "config.json").write_text(text)
        with pytest.raises(ValueError, match=r"EL032.*config\.json"):
            load_embedder(folder)


def test_a_truncated_file_is_refused(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])

    with pytest.raises(ValueError, match=r"EL033.*model\.safetensors"):
        load_embedder(folder)


BAD_STATES = {
    "missing": (lambda s: s.pop("char_cnn.projection.bias"), "EL020.*char_cnn.projection.bias"),
    "unexpected": (lambda s: s.update(more=torch.zeros(2)), "EL020.*Unexpected: more"),
    "shape": (
        lambda s: s.update({"char_cnn.projection.bias": torch.zeros(3)}),
        r"EL021.*char_cnn.projection.bias.*\(3,\).*\(4,\)",
    ),
    "integers": (
        lambda s: s.update({"char_cnn.projection.bias": torch.zeros(4, dtype=torch.int32)}),
        "EL022.*char_cnn.projection.bias.*int32",
    ),
}


@pytest.mark.parametrize("change, match", BAD_STATES.values(), ids=BAD_STATES)
def test_bad_weights_are_refused_and_change_nothing(folder, change, match):
    edit(folder, change)
    bilm = BiLM(BiLMConfig(**SHAPE))
    before = {name: tensor.clone() for name, tensor in bilm.state_dict().items()}

    with pytest.raises(ValueError, match=match):
        load_weights(bilm, safetensors.torch.load_file(folder / "model.safetensors"), "here")
    with pytest.raises(ValueError, match=match):
        load_embedder(folder)

    assert all(torch.equal(before[name], t) for name, t in bilm.state_dict().items())


def edit_json(folder, name, **changes):
    content = json.loads((folder / name).read_text())
    content.update(changes)
    (folder / name).write_text(json.dumps({k: v for k, v in content.items() if v is not ...}))


BAD_CONFIGS = {
    "text": ({"depth": "2"}, 'depth = "2" is not possible for a biLM, expected an integer'),
    "float": ({"width": 8.0}, "width = 8.0 .*expected an integer"),
    "null": ({"cell_width": None}, "cell_width = null .*expected an integer"),
    "flag as text": ({"skip_connections": "False"}, 'skip_connections = "False" .*true or false'),
    "absurd": ({"depth": 10**6}, "depth = 1000000 .*from 1 to 100"),
    "filters": ({"filters": [["1", 3]]}, "filters = .*pairs"),
    "unknown": ({"colour": 1}, "it has keys that are not known: colour"),
    "missing": ({"skip_connections": ...}, "it has no skip_connections"),
}


@pytest.mark.parametrize("changes, match", BAD_CONFIGS.values(), ids=BAD_CONFIGS)
def test_bad_shapes_are_refused_by_key_and_value(folder, changes, match):
    edit_json(folder, "config.json", **changes)
    with pytest.raises(ValueError, match=rf"EL032.*config\.json.*{match}") as caught:
        read_config(folder)
    assert "__init__" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"width": NaN}', b"[" * 100_000])
def test_what_is_no_shape_is_refused_in_plain_words(folder, content):
    (folder / "config.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"EL032.*config\.json'.* it (is|holds)"):
        read_config(folder)


def test_shapes_of_before_there_were_word_tables_are_read(folder):
    edit_json(folder, "config.json", n_words=..., vector_width=...)
    (folder / "digests.json").unlink()
    assert load_embedder(folder).bilm.config == BiLMConfig(**SHAPE)


def test_weights_with_a_stored_state_are_read_without_it(folder):
    expected = load_embedder(folder).embed([["ham"]])
    edit(folder, lambda state: state.update({f"initial_{p}": torch.ones(2) for p in PARTS}))
    (folder / "digests.json").unlink()
    assert_close(load_embedder(folder).embed([["ham"]]), expected, 0)


@pytest.mark.parametrize("n_bytes", [0, 7, 100, 2000, -1])
def test_a_shape_is_not_read_without_its_weights(folder, n_bytes):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:n_bytes])
    with pytest.raises(ValueError, match=r"EL033.*model\.safetensors"):
        read_config(folder)


# Shapes that are possible, for weights that are not there.
LARGE = {
    "depth": {"depth": 100},
    "highways": {"n_highway": 100},
    "cells": {"cell_width": 20_000, "width": 10_000, "depth": 1},
    "words": {"input": "words", "n_words": 100_000_000},
    "vectors": {"input": "vectors", "n_words": 1_000_000, "vector_width": 2000},
    "characters": {"char_width": 4096, "filters": [[64, 10_000]], "max_chars": 64},
}


@pytest.mark.parametrize("changes", LARGE.values(), ids=LARGE)
def test_a_small_file_of_a_large_shape_is_refused(folder, changes):
    edit_json(folder, "config.json", **changes)
    for load in (load_embedder, read_config):
        message = refuse_limited(lambda load=load: load(folder))
        assert "EL020" in message or "EL021" in message


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "digests.json", "meta.json"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_pipes_and_folders_are_no_files(folder, name, make):
    (folder / name).unlink()
    make(folder / name)
    assert "EL101" in refuse_limited(lambda: load_embedder(folder))


@pytest.mark.parametrize("name", ["softmax.safetensors", "vocab.txt"])
def test_pipes_and_folders_are_no_softmax(lm_folder, name):
    for make in (os.mkfifo, os.mkdir):
        (lm_folder / name).unlink()
        make(lm_folder / name)
        assert "EL101" in refuse_limited(lambda: load_language_model(CheckpointFiles(lm_folder)))


def test_links_to_files_are_files(folder, tmp_path):
    for name in ("config.json", "model.safetensors", "digests.json"):
        (folder / name).rename(tmp_path / name)
        (folder / name).symlink_to(tmp_path / name)
    load_embedder(folder)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="EL031"):
        load_embedder(folder)


SETTINGS = {
    "no json": "{",
    "no object": "[1]",
    "many": json.dumps({"cutoffs": list(range(10_000))}),
    "unknown": '{"colour": 1}',
    "of another type": '{"cutoffs": "abc"}',
    "none at all": '{"cutoffs": [[1]]}',
    "zero": '{"cutoffs": [4], "div_value": 0}',
    "taken": '{"width": 10}',
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_settings_of_a_softmax_are_a_strangers(lm_folder, settings):
    path = lm_folder / "softmax.safetensors"
    notes = {"kind": "adaptive", "settings": settings}
    safetensors.torch.save_file(safetensors.torch.load_file(path), path, notes)
    (lm_folder / "digests.json").unlink()
    message = refuse_limited(lambda: load_language_model(CheckpointFiles(lm_folder)))
    assert "EL112" in message and str(lm_folder) in message


def test_settings_that_ask_for_much_memory_are_refused(lm_folder):
    path = lm_folder / "softmax.safetensors"
    notes = {"kind": "adaptive", "settings": '{"cutoffs": [4], "div_value": 1e-9}'}
    safetensors.torch.save_file(safetensors.torch.load_file(path), path, notes)
    (lm_folder / "digests.json").unlink()
    assert "EL021" in refuse_limited(lambda: load_language_model(CheckpointFiles(lm_folder)))


def test_a_softmax_of_an_unknown_kind_is_told(lm_folder):
    path = lm_folder / "softmax.safetensors"
    safetensors.torch.save_file(safetensors.torch.load_file(path), path, {"kind": "theirs"})
    (lm_folder / "digests.json").unlink()
    with pytest.raises(ValueError, match="EL112.*'theirs'"):
        load_language_model(CheckpointFiles(lm_folder))


def test_a_softmax_of_more_words_than_rows_takes_no_memory(lm_folder):
    words = [*WORDS, *map(str, range(1_000_000))]
    (lm_folder / "vocab.txt").write_text("\n".join(words))
    wide = lm_folder.parent / "wide"
    write_native(BiLM(BiLMConfig(**{**SHAPE, "width": 2000, "cell_width": 1000})), wide)
    (wide / "digests.json").unlink()
    for name in ("softmax.safetensors", "vocab.txt"):
        (lm_folder / name).rename(wide / name)

    files = CheckpointFiles(wide)
    assert "EL021" in refuse_limited(lambda: load_language_model(files), n_bytes=600_000_000)


def test_notes_are_read_with_the_same_care(folder):
    assert read_meta(folder) == {}
    (folder / "meta.json").write_text('{"lang": "en"}')
    for read in (read_meta, load_embedder):
        with pytest.raises(ValueError, match=r"EL104.*meta\.json"):
            read(folder)
    (folder / "digests.json").unlink()
    assert read_meta(folder) == {"lang": "en"}
    (folder / "meta.json").write_text("[]")
    with pytest.raises(ValueError, match=r"EL103.*meta\.json"):
        read_meta(folder)
    (folder / "meta.json").unlink()
    assert read_meta(folder) == {}


@pytest.mark.parametrize("path", ["a\0b", "x" * 300, "/" + "y/" * 3000])
def test_paths_that_cannot_be_are_not_there(path):
    with pytest.raises(ValueError, match="EL030"):
        load_embedder(path)
    with pytest.raises(ValueError, match="EL030"):
        load_embedder("options.json", path)
