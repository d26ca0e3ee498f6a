"""Matrices in 8 bits a number: near what they were, and refused without their scales."""

import pytest
import safetensors.torch
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.formats import CheckpointFiles
from spacy_elmo.checkpoints.loaders import load_embedder
from spacy_elmo.checkpoints.native import write_native
from spacy_elmo.checkpoints.tensors import restore_rows, round_rows
from spacy_elmo.language_model.loading import collect_softmax, load_language_model
from spacy_elmo.language_model.softmax import make_softmax

from ..support.helpers import SHAPE

ROWS = torch.tensor([1e-6, 1.0, 300.0, 0.0])


@pytest.fixture
def state():
    return {"weight": torch.randn(4, 9) * ROWS[:, None], "bias": torch.randn(4), "ids": ROWS.int()}


def test_numbers_are_off_by_half_a_scale_at_most(state):
    rounded = round_rows(state)
    assert {name: tensor.dtype for name, tensor in rounded.items()} == {
        "weight": torch.int8,
        "weight.row_scale": torch.float32,
        "bias": torch.float32,
        "ids": torch.int32,
    }
    restored = restore_rows(rounded, "here")
    assert restored.keys() == state.keys()
    bound = state["weight"].abs().amax(1, keepdim=True) / 253
    assert bool(((restored["weight"] - state["weight"]).abs() <= bound).all())
    assert torch.equal(restored["bias"], state["bias"])
    again = round_rows(restored)
    assert torch.equal(again["weight"], rounded["weight"])


def test_what_was_not_rounded_is_left_alone(state):
    assert restore_rows(state, "here") == state


def test_what_is_no_number_is_refused(state):
    state["weight"][1, 2] = float("nan")
    with pytest.raises(ValueError, match="EL106"):
        round_rows(state)


CHANGES = {
    "no scale": {"weight.row_scale": None},
    "no matrix": {"weight": None},
    "a scale of floats": {"weight": torch.zeros(4, 9)},
    "too short": {"weight.row_scale": torch.ones(3)},
    "one for all": {"weight.row_scale": torch.ones(())},
    "whole numbers": {"weight.row_scale": torch.ones(4, dtype=torch.int8)},
    "a vector": {"weight": torch.ones(4, dtype=torch.int8)},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_other_scales_are_refused(state, change):
    rounded = {**round_rows(state), **change}
    kept = {name: tensor for name, tensor in rounded.items() if tensor is not None}
    with pytest.raises(ValueError, match="EL256.*'here' stores weight in 8 bits"):
        restore_rows(kept, "here")


KINDS = {"full": {}, "sampled": {"n_samples": 3}, "adaptive": {"cutoffs": [4]}}
WORDS = ["<S>", "</S>", "<UNK>", "eggs", "ham", "I"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_with_a_rounded_softmax_says_nearly_the_same(tmp_path, kind):
    bilm = BiLM(BiLMConfig(**SHAPE))
    softmax = make_softmax(kind, SHAPE["width"] // 2, len(WORDS), **KINDS[kind])
    stored = collect_softmax(softmax, kind, KINDS[kind], WORDS)
    write_native(bilm, tmp_path / "lm", softmax=stored, round_softmax=True)
    with torch.inference_mode():
        hidden = torch.randn(5, SHAPE["width"] // 2)
        loaded = load_language_model(CheckpointFiles(tmp_path / "lm")).model.softmax
        difference = (loaded.log_probs(hidden) - softmax.log_probs(hidden)).abs()
    assert 0 < float(difference.max()) < 0.05


@pytest.mark.parametrize("text_input", ["characters", "words"])
def test_a_checkpoint_with_rounded_weights_computes_nearly_the_same(tmp_path, text_input):
    sizes = {"input": "words", "n_words": 2} if text_input == "words" else {}
    bilm = BiLM(BiLMConfig(**{**SHAPE, **sizes}))
    if text_input == "words":
        bilm.word_table.fill(["eggs", "ham"])
    write_native(bilm, tmp_path / "plain")
    write_native(bilm, tmp_path / "rounded", dtype=torch.float16, round_weights=True)

    plain, rounded = (load_embedder(tmp_path / name) for name in ("plain", "rounded"))

    found, expected = (e.embed([["eggs", "ham", "eggs"]])[0] for e in (rounded, plain))
    assert 0 < abs(found - expected).max() < 0.02 * abs(expected).max()
    restored, state = (e.bilm.state_dict() for e in (rounded, plain))
    assert {n: t.dtype for n, t in restored.items()} == {n: t.dtype for n, t in state.items()}


def test_rounded_weights_without_their_scales_are_refused(tmp_path):
    write_native(BiLM(BiLMConfig(**SHAPE)), tmp_path / "lm", round_weights=True)
    path = tmp_path / "lm" / "model.safetensors"
    state = safetensors.torch.load_file(path)
    del state["char_cnn.projection.weight.row_scale"]
    safetensors.torch.save_file(state, path)
    with pytest.raises(ValueError, match="EL256.*stores char_cnn.projection.weight in 8 bits"):
        load_embedder(tmp_path / "lm")
