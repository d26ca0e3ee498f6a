"""The name that caches and results have on disk stays what it is."""

from dataclasses import dataclass, replace

import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.inference.embedder import Embedder, hash_weights
from spacy_elmo.inference.identity import identify

from ..support.helpers import SHAPE

# Of version 0.1.0. If it changes, every cache is void and every table's hash is wrong.
GOLDEN = "d5df30e678aea80482bf2af9bdbfbb1d"


@dataclass(frozen=True)
class LaterConfig(BiLMConfig):
    """With the fields of a later version."""

    gates: int = 4
    attention: bool = False


@torch.no_grad()
def make_bilm(config):
    """The same numbers on each machine, exact in float32."""
    bilm = BiLM(config)
    for i, tensor in enumerate(bilm.state_dict().values()):
        if tensor.is_floating_point():
            values = torch.arange(tensor.numel(), dtype=torch.float32).view(tensor.shape)
            tensor.copy_((values + i) / 64)
    return bilm


def hash_of(config=None, precision="fp32"):
    return hash_weights(make_bilm(config or BiLMConfig(**SHAPE)), precision).hex()


def test_the_hash_stays_the_same():
    assert hash_of() == GOLDEN


def test_weights_are_identified_for_as_long_as_they_stay():
    bilm, other = make_bilm(BiLMConfig(**SHAPE)), make_bilm(BiLMConfig(**SHAPE))

    assert identify(bilm) == identify(bilm) == identify(other) == GOLDEN
    with torch.no_grad():
        bilm.forward_lstm.layers[0].bias[0] += 1
    assert identify(bilm) != GOLDEN == identify(other)
    with torch.no_grad():
        bilm.forward_lstm.layers[0].bias[0] -= 1
    assert identify(bilm) == GOLDEN


def test_a_field_that_came_later_changes_nothing_by_its_default():
    assert hash_of(LaterConfig(**SHAPE)) == GOLDEN
    others = {hash_of(LaterConfig(**SHAPE, **later)) for later in ({"gates": 3}, {"attention": 1})}
    assert len(others | {GOLDEN}) == 3


CHANGES = [
    {"skip_connections": False},
    {"activation": "tanh"},
    {"cell_clip": 3.0},
    {"proj_clip": 3.0},
    {"max_chars": 20},
]


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_what_changes_vectors_changes_the_hash(changes):
    assert hash_of(replace(BiLMConfig(**SHAPE), **changes)) != GOLDEN


def test_weights_and_how_they_are_run_change_the_hash():
    embedders = [
        Embedder(make_bilm(BiLMConfig(**SHAPE)), **settings)
        for settings in ({}, {"precision": "bf16"})
    ]
    hashes = {embedder.hash_weights().hex() for embedder in embedders}
    with torch.no_grad():
        embedders[0].bilm.char_cnn.projection.bias[0] += 1

    assert GOLDEN in hashes
    assert len(hashes | {embedders[0].hash_weights().hex()}) == 3
