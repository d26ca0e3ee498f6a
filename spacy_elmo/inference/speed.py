"""How fast and how exact a biLM is on this machine, in each precision."""

import time
from functools import partial
from statistics import median
from typing import Any, Callable, Dict, List, Sequence, Tuple

import numpy as np
import torch
from numpy.typing import NDArray

from ..bilm.model import BiLM
from ..errors import Errors
from ..utils import read_peak_memory
from .embedder import Embedder
from .threads import choose_n_threads, run_parallel

_PRODUCT_SIZE = 2048
# One sentence at a time is slow: a sample is enough.
_FEW_TOKENS = 2000


def measure_limit(n_threads: int, n_repeats: int = 5) -> float:
    """Measure the operations a second, multiply and add counted as two, of torch's large float32
    matrix products: the median of `n_repeats`."""
    matrices = [torch.randn(_PRODUCT_SIZE, _PRODUCT_SIZE) for _ in range(n_threads)]
    tasks = [partial(torch.mm, matrix, matrices[0]) for matrix in matrices]
    run_parallel(tasks, n_threads)
    rates = [_rate(n_threads, partial(run_parallel, tasks, n_threads)) for _ in range(n_repeats)]
    return 2 * _PRODUCT_SIZE**3 * median(rates)


def measure_speed(
    bilm: BiLM,
    sentences: Sequence[Sequence[str]],
    *,
    precisions: Sequence[str] = ("fp32",),
    batch_sizes: Sequence[int] = (1, 8, 64, 256),
    n_threads: int = 0,
    n_repeats: int = 3,
) -> Dict[str, Any]:
    """Measure a biLM on sentences: tokens a second for each precision and batch size with a full
    word cache (the median of `n_repeats` rounds; each runs everything once, so that other load
    affects all alike), and their share of the machine's "limit"; "cold", with an empty cache;
    "errors" against float32; "hit_rate" of the cache on the first pass; peak "memory" in bytes."""
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
        cold[name] = _rate(_count(sentences), partial(embedders[name].embed, sentences))
    cache = embedders[precisions[0]].word_cache
    hit_rate = cache.n_hits / max(1, cache.n_hits + cache.n_misses)
    memory = read_peak_memory()
    n_threads = choose_n_threads(n_threads)
    limit = measure_limit(n_threads)

    samples = {size: _take(sentences, size) for size in batch_sizes}
    rates: Dict[Tuple[str, int], List[float]] = {
        (name, size): [] for name in precisions for size in batch_sizes
    }
    for turn in range(n_repeats + 1):
        for (name, size), turns in rates.items():
            embed = partial(_embed_parts, embedders[name], samples[size], size)
            rate = _rate(_count(samples[size]), embed)
            # The first round compiles kernels.
            if turn:
                turns.append(rate)
    rows = [
        {
            "precision": name,
            "batch_size": size,
            "tokens_per_second": median(turns),
            "share": median(turns) * bilm.config.n_operations / limit,
        }
        for (name, size), turns in rates.items()
    ]
    return {
        "n_threads": n_threads,
        "n_tokens": _count(sentences),
        "limit": limit,
        "operations_per_token": bilm.config.n_operations,
        "rows": rows,
        "cold": cold,
        "errors": errors,
        "hit_rate": hit_rate,
        "memory": memory,
    }


def _rate(n: int, function: Callable[[], Any]) -> float:
    """How many of the `n` things that a call does are done in a second."""
    started = time.perf_counter()
    function()
    return n / (time.perf_counter() - started)


def _count(sentences: Sequence[Sequence[str]]) -> int:
    return sum(map(len, sentences))


def _embed_parts(embedder: Embedder, sentences: Sequence[Sequence[str]], size: int) -> None:
    for start in range(0, len(sentences), size):
        embedder.embed(sentences[start : start + size])


def _take(sentences: Sequence[Sequence[str]], size: int) -> Sequence[Sequence[str]]:
    """All sentences, or for small batches some from all over the text."""
    step = max(1, _count(sentences) // _FEW_TOKENS) if size < 8 else 1
    return sentences[::step]


def _compare(arrays: List[NDArray], exact: List[NDArray]) -> Dict[str, float]:
    """The largest difference of a number, and the least cosine of a token's layer."""
    # NumPy's extremes keep NaN, Python's do not.
    largest = np.max([np.abs(A - B).max() for A, B in zip(arrays, exact)])
    cosines = [
        (A * B).sum(axis=-1) / (np.linalg.norm(A, axis=-1) * np.linalg.norm(B, axis=-1))
        for A, B in zip(arrays, exact)
    ]
    return {"largest": float(largest), "cosine": float(np.min([c.min() for c in cosines]))}
