"""Search of vectors: by NumPy, or by faiss. Both read mapped files without a copy."""

from typing import Iterable, List, Tuple

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors

try:
    import faiss
except ImportError:
    faiss = None  # type: ignore[assignment]

BACKENDS = ("numpy", "faiss")
_N_ROWS = 100_000


def search_arrays(
    arrays: Iterable[NDArray], query: NDArray, n: int, *, backend: str = "numpy"
) -> List[Tuple[int, float]]:
    """Compare a query with all rows.

    arrays (Iterable[NDArray]): float32, put end to end; mapped from files they need no
        memory.
    query (NDArray): shape (width,).
    n (int): how many.
    backend (str): one of `BACKENDS`.
    RETURNS (List[Tuple[int, float]]): rows and products, the largest first.
    RAISES (ValueError): EL045 if there is no faiss.
    """
    require_backend(backend)
    search = _search_faiss if backend == "faiss" else _search_numpy
    best: List[Tuple[float, int]] = []
    start = 0
    for array in arrays:
        for first in range(0, len(array), _N_ROWS):
            rows, scores = search(array[first : first + _N_ROWS], query, n)
            # Minus the row: of equals, the first one.
            best += [(float(s), -(start + first + int(row))) for row, s in zip(rows, scores)]
            best = sorted(best, reverse=True)[:n]
        start += len(array)
    return [(-row, score) for score, row in best]


def _search_numpy(X: NDArray, query: NDArray, n: int) -> Tuple[NDArray, NDArray]:
    scores = X @ query
    rows = np.argsort(-scores, kind="stable")[:n]
    return rows, scores[rows]


def _search_faiss(X: NDArray, query: NDArray, n: int) -> Tuple[NDArray, NDArray]:
    metric = faiss.METRIC_INNER_PRODUCT
    scores, rows = faiss.knn(query[None], X, min(n, len(X)), metric=metric)
    return rows[0], scores[0]


def require_backend(backend: str) -> None:
    """backend (str): one of `BACKENDS`. RAISES (ValueError): EL045 if there is no faiss."""
    if backend == "faiss" and faiss is None:
        raise ValueError(Errors.EL045)
