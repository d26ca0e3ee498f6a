"""Measuring speed: the figures' sense, not their size."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.inference import speed
from spacy_elmo.inference.speed import _compare, measure_limits, measure_speed

from ..support import oracle
from ..support.helpers import SHAPE
from ..support.toy import make_options, make_weights

SENTENCES = [["green", "eggs", "and", "ham"], [], ["ham", "!"]] * 10


@pytest.fixture(scope="module")
def bilm():
    torch.manual_seed(0)
    return BiLM(BiLMConfig(**SHAPE)).requires_grad_(False)


class Counted(np.ndarray):
    """Weights that count what is multiplied with them, and how often they are read."""

    n_operations = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if ufunc is np.matmul:
            # Each number of a matrix is multiplied once with a vector, and added up.
            Counted.n_operations += 2 * self.size
        plain = [np.asarray(array) for array in inputs]
        return getattr(ufunc, method)(*plain, **kwargs)


def count_operations(depth, cell_width, projection, n_tokens=3):
    """Of the oracle's LSTMs for a token, as they are done; and the bytes of float32 that a
    step of time needs again."""
    options = make_options(dim=cell_width, n_layers=depth)
    weights = make_weights(options, project=projection)
    recurrent = 0
    for name, array in weights.items():
        if name.endswith("W_0"):
            recurrent += array[array.shape[0] // 2 :].nbytes
        recurrent += array.nbytes if name.endswith("W_P_0") else 0
    weights = {name: array.view(Counted) for name, array in weights.items()}
    Counted.n_operations = 0
    for direction in (0, 1):
        vectors = np.zeros((n_tokens, SHAPE["width"] // 2))
        state = oracle.zero_state(options)[direction]
        oracle.run_direction(options, weights, direction, vectors, state)
    return Counted.n_operations / n_tokens, recurrent


@pytest.mark.parametrize("changes", [{}, {"depth": 3}, {"cell_width": 4, "projection": False}])
def test_operations_and_weights_are_counted(changes):
    config = BiLMConfig(**{**SHAPE, **changes})

    n_operations, n_bytes = count_operations(config.depth, config.cell_width, config.projection)

    assert config.n_operations == n_operations
    assert 4 * config.n_recurrent == n_bytes


def test_shares_are_of_what_the_machine_can_do(bilm, monkeypatch):
    """By a clock that moves on by a second whenever it is read: 60 tokens take a second."""
    n_operations, n_bytes = count_operations(2, 6, True)
    limits = {
        "products": 60 * n_operations,
        "packed_products": 120 * n_operations,
        "reading": 240 * n_bytes,
    }
    monkeypatch.setattr(speed, "measure_limits", lambda n_threads: limits)
    clock = SimpleNamespace(perf_counter=map(float, itertools.count()).__next__)
    monkeypatch.setattr(speed, "time", clock)

    result = speed.measure_speed(bilm, SENTENCES, batch_sizes=[1, 7], n_threads=1, n_repeats=1)

    for row, size in zip(result["rows"], (1, 7), strict=True):
        assert row == {
            "precision": "fp32",
            "batch_size": size,
            "tokens_per_second": 60.0,
            "share": pytest.approx(1.0),
            "share_of_packed": pytest.approx(0.5),
            "share_of_reading": pytest.approx(0.25),
        }
    assert result["cold"] == {"fp32": 60.0}
    assert (result["n_tokens"], result["limits"]) == (60, limits)
    # 7 distinct words with the boundaries: all are looked up once, and missed.
    assert result["hit_rate"] == 0.0


def test_errors_are_measured_and_what_is_no_number_is_not_hidden():
    exact = [np.ones((1, 2, 3), "float32"), np.ones((1, 1, 3), "float32")]
    off = [exact[0].copy(), exact[1].copy()]
    off[1][0, 0, 0] = 3.0

    assert _compare(exact, exact) == {"largest": 0.0, "cosine": pytest.approx(1.0)}
    assert _compare(off, exact) == {"largest": 2.0, "cosine": pytest.approx(5 / 33**0.5)}
    off[1][0, 0, 0] = np.nan
    assert all(math.isnan(value) for value in _compare(off, exact).values())


def test_limits_grow_with_nothing_but_the_machine():
    limits = measure_limits(1, n_repeats=1)

    assert limits["products"] > 1e8
    assert limits["reading"] > 1e8


def test_a_text_without_words_is_refused(bilm):
    with pytest.raises(ValueError, match="EL094"):
        measure_speed(bilm, [[], []])
