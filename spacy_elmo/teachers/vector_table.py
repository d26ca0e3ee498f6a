"""`VectorTable`: static vectors by the hash of a word, without the words themselves."""

import hashlib
from pathlib import Path
from typing import NamedTuple, Sequence

import numpy as np
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.vectors import Mode, Vectors
from thinc.util import to_numpy

from ..errors import Errors
from ..text.static_vectors import find_rows

# Vectors that are computed with at a time: a table may fill much of the memory.
_ROWS = 16384


class VectorTable(NamedTuple):
    """Which word has which vector. Many words can share one.

    keys (NDArray): hashes of the words as spaCy makes them, sorted, uint64, (n_words,).
    rows (NDArray): row of `vectors` for each, int32, (n_words,).
    vectors (NDArray): centred, of length 1, float16, shape (n_vectors, vector_width).
    """

    keys: NDArray
    rows: NDArray
    vectors: NDArray

    def find(self, words: Sequence[str]) -> NDArray:
        """words (Sequence[str]): any words. RETURNS (NDArray): place of each in `keys`, -1 for
        those outside, int64, (n_words,)."""
        wanted = np.array([get_string_id(word) for word in words], dtype=np.uint64)
        places = np.searchsorted(self.keys, wanted)
        places[places == len(self.keys)] = 0
        return np.where(self.keys[places] == wanted, places, -1)

    def get(self, places: NDArray) -> NDArray:
        """places (NDArray): in `keys`, (n_words,). RETURNS (NDArray): the vectors there,
        float32, shape (n_words, vector_width)."""
        return self.vectors[self.rows[places]].astype("float32")

    def hash(self) -> str:
        """RETURNS (str): the same for tables that say the same."""
        digest = hashlib.blake2b(digest_size=16)
        for part in self:
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


def read_vector_table(path: str) -> VectorTable:
    """Read the vectors of a pipeline; nothing else of it is loaded.

    path (str): a pipeline's folder, or the vocab folder in it.
    RETURNS (VectorTable): the words that have a vector which is not zero.
    RAISES (ValueError): EL182 if there are none, or none that belong to single words.
    """
    folder = Path(path or "") / "vocab"
    folder = folder if folder.is_dir() else folder.parent
    if not path or not (folder / "vectors").is_file():
        raise ValueError(Errors.EL182.format(path=path, problem="it has no file 'vectors'"))
    try:
        vectors = Vectors().from_disk(folder)
        is_usable = vectors.mode == Mode.default and len(vectors.key2row) and vectors.data.any()
        problem = f"words: {len(vectors.key2row)}, mode: '{vectors.mode}'"
        table = _sort(vectors) if is_usable else None
    except Exception as err:  # NumPy, msgpack and spaCy each have their own
        raise ValueError(Errors.EL182.format(path=path, problem=err)) from err
    if table is None:
        raise ValueError(Errors.EL182.format(path=path, problem=problem))
    return table


def _sort(vectors: Vectors) -> VectorTable:
    """RAISES (Exception): whatever NumPy raises for tables that are none."""
    data = np.asarray(to_numpy(vectors.data), dtype="float32")
    keys = np.fromiter(vectors.key2row.keys(), dtype=np.uint64)
    rows = find_rows(vectors)
    if data.ndim != 2 or not np.isfinite(data).all():
        raise ValueError("they are no rows of finite numbers")
    kept = np.asarray(data.any(axis=1))[rows]
    if not kept.any():
        raise ValueError("all that belong to words are 0")
    order = np.argsort(keys[kept], kind="stable")
    return VectorTable(keys[kept][order], rows[kept][order], _normalise(data))


def _normalise(vectors: NDArray) -> NDArray:
    """A direction that all share says nothing of a word."""
    n_vectors = max(1, np.count_nonzero(vectors.any(axis=1)))
    centre = vectors.sum(axis=0, dtype="float64") / n_vectors
    normalised = np.empty(vectors.shape, dtype="float16")
    for start in range(0, len(vectors), _ROWS):
        rows = slice(start, start + _ROWS)
        centred = vectors[rows] - centre
        lengths = np.linalg.norm(centred, axis=1, keepdims=True)
        normalised[rows] = centred / np.maximum(1e-8, lengths)
    return normalised
