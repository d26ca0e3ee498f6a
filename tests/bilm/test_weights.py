"""A module is filled with finite numbers of the right shapes, or left as it is."""

import math
from dataclasses import replace

import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import (
    check_headers,
    get_headers,
    hash_weights,
    load_weights,
    plan_weights,
)

from ..support.helpers import SHAPE

BIAS = "char_cnn.projection.bias"
SHAPES = {
    "characters": {},
    "no projection": {"projection": False, "cell_width": 4, "depth": 3, "n_highway": 0},
    "words": {"input": "words", "n_words": 5},
    "no words": {"input": "words"},
    "vectors": {"input": "vectors", "n_words": 5, "vector_width": 7},
}


@pytest.fixture
def bilm():
    return BiLM(BiLMConfig(**SHAPE))


def state_with(bilm, name, tensor):
    return {**{key: t.clone() for key, t in bilm.state_dict().items()}, name: tensor}


@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES)
def test_weights_are_known_without_making_them(changes):
    config = BiLMConfig(**{**SHAPE, **changes})
    plan = plan_weights(config)

    assert plan == get_headers(BiLM(config).state_dict())
    assert config.n_weights == sum(math.prod(header.shape) for header in plan.values())


BAD = {
    "nan": ([0.0, 1.0, float("nan"), 2.0], torch.float16, r"1 numbers.*\[2\]"),
    "infinite": ([0.0, 1.0, float("-inf"), 2.0], torch.bfloat16, r"1 numbers.*\[2\]"),
    "too large": ([0.0, 1e39, -1e39, 2.0], torch.float64, r"2 numbers.*32 bits.*\[1\]"),
}


@pytest.mark.parametrize("values, dtype, match", BAD.values(), ids=BAD)
def test_numbers_that_are_not_finite_are_refused(bilm, values, dtype, match):
    before = {name: t.clone() for name, t in bilm.state_dict().items()}

    with pytest.raises(ValueError, match=rf"EL106.*{BIAS}.*here.*{match}"):
        load_weights(bilm, state_with(bilm, BIAS, torch.tensor(values, dtype=dtype)), "here")

    assert all(torch.equal(before[name], t) for name, t in bilm.state_dict().items())


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn])
def test_other_types_are_refused(bilm, dtype):
    with pytest.raises(ValueError, match=rf"EL021.*{BIAS}.*expected floating-point"):
        load_weights(bilm, state_with(bilm, BIAS, torch.zeros(4).to(dtype)), "here")


def test_keys_of_a_word_table_are_ascending_integers():
    bilm = BiLM(BiLMConfig(**{**SHAPE, "input": "words", "n_words": 3}))
    keys = "word_table.keys"
    with pytest.raises(ValueError, match=f"EL106.*{keys}.*ascend"):
        load_weights(bilm, state_with(bilm, keys, torch.tensor([1, 3, 2])), "here")
    with pytest.raises(ValueError, match=f"EL021.*{keys}.*expected integers"):
        load_weights(bilm, state_with(bilm, keys, torch.zeros(3)), "here")
    load_weights(bilm, state_with(bilm, keys, torch.tensor([-5, 3, 9])), "here")


def test_many_wrong_names_make_a_short_message():
    names = {f"n{i}\x1b": torch.zeros(1) for i in range(10_000)}
    with pytest.raises(ValueError, match=r"EL020.*and 9992 more") as caught:
        check_headers({}, get_headers(names), "here")
    assert len(str(caught.value)) < 500 and str(caught.value).isprintable()


# ---- hashes, after which caches are named, and which saved components hold

GOLDEN = "d5df30e678aea80482bf2af9bdbfbb1d"
CHANGES = [
    {"skip_connections": False},
    {"activation": "tanh"},
    {"cell_clip": 3.0},
    {"max_chars": 20},
]


@torch.no_grad()
def hash_of(config, precision="fp32", dtype=torch.float32):
    """Of a biLM with the same numbers on each machine, exact in float32."""
    bilm = BiLM(config)
    for i, tensor in enumerate(bilm.state_dict().values()):
        values = torch.arange(tensor.numel(), dtype=torch.float32).view(tensor.shape)
        tensor.copy_((values + i) / 64)
    return hash_weights(bilm.to(dtype), precision).hex()


def test_the_hash_of_weights_stays_the_same():
    assert hash_of(BiLMConfig(**SHAPE)) == GOLDEN


def test_shape_precision_and_type_change_the_hash():
    config = BiLMConfig(**SHAPE)
    hashes = {hash_of(replace(config, **changes)) for changes in CHANGES}
    hashes |= {hash_of(config, "bf16"), hash_of(config, dtype=torch.bfloat16)}

    assert len(hashes | {GOLDEN}) == len(CHANGES) + 3
