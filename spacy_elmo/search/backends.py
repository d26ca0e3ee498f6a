"""Where the vectors of an index lie: as NumPy's arrays, or with faiss."""

from pathlib import Path
from typing import Any, List, Tuple

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors
from ..util.atomic import atomic_file

try:
    import faiss
except ImportError:
    faiss = None  # type: ignore[assignment]

BACKENDS = ("numpy", "faiss")
_N_ROWS = 100_000


def search_arrays(arrays: List[NDArray], query: NDArray, n: int) -> List[Tuple[int, float]]:
    """Compare a query with all rows.

    arrays (List[NDArray]): float32, put end to end; mapped from files they need no memory.
    query (NDArray): shape (width,).
    n (int): how many.
    RETURNS (List[Tuple[int, float]]): rows and products, the largest first.
    """
    best: List[Tuple[float, int]] = []
    start = 0
    for array in arrays:
        for first in range(0, len(array), _N_ROWS):
            scores = array[first : first + _N_ROWS] @ query
            rows = np.argsort(-scores, kind="stable")[:n]
            # Minus the row: of equals, the first one.
            best += [(float(scores[i]), -(start + first + int(i))) for i in rows]
            best = sorted(best, reverse=True)[:n]
        start += len(array)
    return [(-row, score) for score, row in best]


def write_faiss(path: Path, arrays: List[NDArray]) -> None:
    """Write faiss's file, an exact index of products.

    path (Path): where.
    arrays (List[NDArray]): the vectors.
    RAISES (ValueError): EL045 without faiss.
    """
    index = _require_faiss().IndexFlatIP(arrays[0].shape[1])
    for array in arrays:
        index.add(np.ascontiguousarray(array))
    with atomic_file(path) as beside:
        faiss.write_index(index, str(beside))


def search_faiss(path: Path, query: NDArray, n: int) -> List[Tuple[int, float]]:
    """See `search_arrays`. RAISES (ValueError): EL045 without faiss."""
    index = _require_faiss().read_index(str(path))
    scores, rows = index.search(query[None], n)
    return [(int(row), float(score)) for row, score in zip(rows[0], scores[0]) if row >= 0]


def _require_faiss() -> Any:
    if faiss is None:
        raise ValueError(Errors.EL045)
    return faiss
