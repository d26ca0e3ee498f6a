"""Measuring speed: the figures' sense, not their size."""

import math

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.speed import _compare, measure_limits, measure_speed, read_peak_memory

from .helpers import SHAPE

SENTENCES = [["green", "eggs", "and", "ham"], [], ["ham", "!"]] * 10


@pytest.fixture(scope="module")
def bilm():
    torch.manual_seed(0)
    return BiLM(BiLMConfig(**SHAPE)).requires_grad_(False)


def count_operations(config):
    """Multiplications and additions of `oracle`'s LSTM for a token, written out."""
    P, D = config.width // 2, config.cell_width
    one_layer = (2 * P) * (4 * D) + (D * P if config.projection else 0)
    return 2 * 2 * config.depth * one_layer


@pytest.mark.parametrize("changes", [{}, {"depth": 3}, {"cell_width": 4, "projection": False}])
def test_operations_are_counted(changes):
    config = BiLMConfig(**{**SHAPE, **changes})

    assert config.n_operations == count_operations(config)


def test_shares_follow_from_rates_and_limits(bilm):
    result = measure_speed(bilm, SENTENCES, batch_sizes=[1, 7], n_threads=1, n_repeats=1)

    assert [(row["precision"], row["batch_size"]) for row in result["rows"]] == [
        ("fp32", 1),
        ("fp32", 7),
    ]
    for row in result["rows"]:
        rate = row["share"] * result["limits"]["products"] / bilm.config.n_operations
        assert rate == pytest.approx(row["tokens_per_second"])
    assert result["n_tokens"] == 60
    assert result["errors"] == {"fp32": {"largest": 0.0, "cosine": pytest.approx(1.0)}}
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


def test_peak_memory_counts_what_was_touched():
    before = read_peak_memory()
    np.ones(before // 8 + 5_000_000).sum()

    assert read_peak_memory() > before


def test_a_text_without_words_is_refused(bilm):
    with pytest.raises(ValueError, match="EL094"):
        measure_speed(bilm, [[], []])
