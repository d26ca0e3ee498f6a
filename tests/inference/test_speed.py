"""Measuring speed: the meaning of the figures, not their size."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.inference import speed
from spacy_elmo.inference.speed import _compare, measure_speed

from ..support.helpers import SHAPE

SENTENCES = [["green", "eggs", "and", "ham"], [], ["ham", "!"]] * 10


@pytest.fixture(scope="module")
def bilm():
    torch.manual_seed(0)
    return BiLM(BiLMConfig(**SHAPE)).requires_grad_(False)


def test_shares_are_of_the_limit_of_the_machine(bilm, monkeypatch):
    """By a clock that advances a second whenever it is read: 60 tokens take a second."""
    limit = 120 * bilm.config.n_operations
    monkeypatch.setattr(speed, "measure_limit", lambda n_threads: limit)
    clock = SimpleNamespace(perf_counter=map(float, itertools.count()).__next__)
    monkeypatch.setattr(speed, "time", clock)

    result = measure_speed(bilm, SENTENCES, batch_sizes=[1, 7], n_threads=1, n_repeats=1)

    for row, size in zip(result["rows"], (1, 7), strict=True):
        assert row == {
            "precision": "fp32",
            "batch_size": size,
            "tokens_per_second": 60.0,
            "share": pytest.approx(0.5),
        }
    assert result["cold"] == {"fp32": 60.0}
    assert (result["n_tokens"], result["limit"]) == (60, limit)
    # 7 distinct words with the boundaries: all are looked up once, and missed.
    assert result["hit_rate"] == 0.0


def test_errors_are_measured_and_nan_is_not_hidden():
    exact = [np.ones((1, 2, 3), "float32"), np.ones((1, 1, 3), "float32")]
    off = [exact[0].copy(), exact[1].copy()]
    off[1][0, 0, 0] = 3.0

    assert _compare(exact, exact) == {"largest": 0.0, "cosine": pytest.approx(1.0)}
    assert _compare(off, exact) == {"largest": 2.0, "cosine": pytest.approx(5 / 33**0.5)}
    off[1][0, 0, 0] = np.nan
    assert all(math.isnan(value) for value in _compare(off, exact).values())


def test_a_text_without_words_is_refused(bilm):
    with pytest.raises(ValueError, match="EL094"):
        measure_speed(bilm, [[], []])
