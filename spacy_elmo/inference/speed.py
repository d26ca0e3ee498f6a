"""How fast a biLM is on this machine, against what the machine can do."""

import time
from functools import partial
from statistics import median
from typing import Any, Callable, Dict, List, Sequence, Tuple

import numpy as np
import torch
from numpy.typing import NDArray

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..errors import Errors
from ..utils import read_peak_memory
from .embedder import Embedder
from .packed_layers import PackedLinear
from .threads import choose_n_threads, run_parallel

_PRODUCT_SIZE = 2048
# Far more numbers than a cache holds.
_READ_NUMBERS = 2**26
_MOST_BUFFERS = 4
# One sentence at a time is slow: fewer tokens are enough for a figure.
_FEW_TOKENS = 2000


def measure_limits(n_threads: int, n_repeats: int = 5) -> Dict[str, float]:
    """Measure what the machine can do at best, on as many threads.

    n_threads (int): used at a time.
    n_repeats (int): of which the median counts.
    RETURNS (Dict[str, float]): "products", the operations a second of torch's large
        float32 matrix products, multiply and add counted as two; "packed_products", with
        one side laid out beforehand; "reading", the bytes a second that are read from
        memory.
    """
    size = _PRODUCT_SIZE
    matrices = [torch.randn(size, size) for _ in range(n_threads)]
    packed = PackedLinear(matrices[0])
    plain_tasks = [partial(torch.mm, A, matrices[0]) for A in matrices]
    packed_tasks = [partial(packed, A) for A in matrices]
    plain, fast = (
        _time(partial(run_parallel, tasks, n_threads), n_repeats)
        for tasks in (plain_tasks, packed_tasks)
    )
    numbers = torch.zeros(_READ_NUMBERS * min(n_threads, _MOST_BUFFERS))
    read = _time(
        partial(run_parallel, [x.sum for x in numbers.chunk(n_threads)], n_threads), n_repeats
    )
    return {
        "products": n_threads * 2 * size**3 / plain,
        "packed_products": n_threads * 2 * size**3 / fast,
        "reading": numbers.nbytes / read,
    }


def measure_speed(
    bilm: BiLM,
    sentences: Sequence[Sequence[str]],
    *,
    precisions: Sequence[str] = ("fp32",),
    batch_sizes: Sequence[int] = (1, 8, 64, 256),
    n_threads: int = 0,
    n_repeats: int = 3,
) -> Dict[str, Any]:
    """Measure a biLM on a text.

    bilm (BiLM): with its weights.
    sentences (Sequence[Sequence[str]]): words of each sentence.
    precisions (Sequence[str]): of the products.
    batch_sizes (Sequence[int]): sentences at a time.
    n_threads (int): used at a time; 0 for as many as torch uses.
    n_repeats (int): turns, of which the medians count. A turn runs everything once, so
        that a neighbour on the machine troubles all figures alike.
    RETURNS (Dict[str, Any]): the limits; "rows", for each precision and batch size tokens
        a second with a full word cache, and their shares of the limits (the weights of
        the recurrence are read for each token if sentences come one at a time); for
        each precision the rate with an empty cache, and the errors against float32; the
        cache's hit rate and the peak memory of the process.
    RAISES (ValueError): EL016 if the machine lacks a precision, EL017 for an unknown
        one, EL094 for a text without words.
    """
    sentences = [words for words in sentences if words]
    if not sentences:
        raise ValueError(Errors.EL094.format(path="the text"))
    embedders = {
        name: Embedder(bilm, precision=name, n_threads=n_threads)
        for name in dict.fromkeys(["fp32", *precisions])
    }
    exact = embedders["fp32"].embed(sentences)
    cold, errors = {}, {}
    for name in precisions:
        # The first pass compiles kernels.
        errors[name] = _compare(embedders[name].embed(sentences), exact)
        embedders[name].word_cache.clear()
        cold[name] = _rate(sentences, partial(embedders[name].embed, sentences))
    memory = read_peak_memory()
    n_threads = choose_n_threads(n_threads)
    limits = measure_limits(n_threads)
    cache = embedders[precisions[0]].word_cache
    hit_rate = cache.n_hits / max(1, cache.n_hits + cache.n_misses)
    measured = {name: embedders[name] for name in precisions}
    rates = _measure_rates(measured, sentences, batch_sizes, n_repeats)
    return {
        "n_threads": n_threads,
        "n_tokens": sum(map(len, sentences)),
        "limits": limits,
        "operations_per_token": bilm.config.n_operations,
        "rows": [_make_row(bilm.config, limits, *key, rate) for key, rate in rates.items()],
        "cold": cold,
        "errors": errors,
        "hit_rate": hit_rate,
        "memory": memory,
    }


def _measure_rates(
    embedders: Dict[str, Embedder],
    sentences: Sequence[Sequence[str]],
    batch_sizes: Sequence[int],
    n_repeats: int,
) -> Dict[Tuple[str, int], float]:
    """RETURNS (Dict[Tuple[str, int], float]): by precision and batch size the median of
    tokens per second, with a full word cache."""
    samples = {size: _take(sentences, size) for size in batch_sizes}
    rates: Dict[Tuple[str, int], List[float]] = {
        (name, size): [] for name in embedders for size in batch_sizes
    }
    for turn in range(n_repeats + 1):
        for (name, size), turns in rates.items():
            rate = _rate(samples[size], partial(_embed_parts, embedders[name], samples[size], size))
            # The first turn compiles kernels.
            if turn:
                turns.append(rate)
    return {key: median(turns) for key, turns in rates.items()}


def _make_row(
    config: BiLMConfig, limits: Dict[str, float], precision: str, batch_size: int, rate: float
) -> Dict[str, Any]:
    return {
        "precision": precision,
        "batch_size": batch_size,
        "tokens_per_second": rate,
        "share": rate * config.n_operations / limits["products"],
        "share_of_packed": rate * config.n_operations / limits["packed_products"],
        # One sentence at a time reads these weights for each token.
        "share_of_reading": rate * 4 * config.n_recurrent / limits["reading"],
    }


def _time(function: Callable[[], Any], n_repeats: int) -> float:
    function()
    seconds = []
    for _ in range(n_repeats):
        started = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - started)
    return median(seconds)


def _rate(sentences: Sequence[Sequence[str]], embed: Callable[[], Any]) -> float:
    started = time.perf_counter()
    embed()
    return sum(map(len, sentences)) / (time.perf_counter() - started)


def _embed_parts(embedder: Embedder, sentences: Sequence[Sequence[str]], size: int) -> None:
    for start in range(0, len(sentences), size):
        embedder.embed(sentences[start : start + size])


def _take(sentences: Sequence[Sequence[str]], size: int) -> Sequence[Sequence[str]]:
    """All sentences, or for small batches some from all over the text."""
    n_tokens = sum(map(len, sentences))
    step = max(1, n_tokens // _FEW_TOKENS) if size < 8 else 1
    return sentences[::step]


def _compare(arrays: List[NDArray], exact: List[NDArray]) -> Dict[str, float]:
    """The largest difference of a number, and the least cosine of a token's layer."""
    # NumPy's extremes keep what is not a number, Python's do not.
    largest = np.max([np.abs(A - B).max() for A, B in zip(arrays, exact)])
    cosines = [
        (A * B).sum(axis=-1) / (np.linalg.norm(A, axis=-1) * np.linalg.norm(B, axis=-1))
        for A, B in zip(arrays, exact)
    ]
    return {"largest": float(largest), "cosine": float(np.min([c.min() for c in cosines]))}
