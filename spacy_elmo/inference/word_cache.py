"""`WordCache`: a bounded store of word vectors, keyed by the word's text; copies of rows."""

from itertools import islice
from typing import Any, Dict, List, Optional, Tuple, Union

import torch
from torch import Tensor

from .threads import CACHE_LOCK

Rows = Union[Tensor, List[int]]

# Longer words are not kept: no language has them, and a few thousand would need as much memory as
# all others.
_MAX_LETTERS = 256


class WordCache:
    """Keep the vectors of the `capacity` words used last, each of at most 256 letters. Text is
    Zipfian: most words of the next batch were in an earlier one, and the convolutions cost as much
    as a small LSTM. A hit returns the stored bits. Copies and pickles of a cache are empty."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.clear()

    def clear(self) -> None:
        """Forget all words and the counts."""
        with CACHE_LOCK:
            # The row of each word in the table, the word unused longest first.
            self._rows: Dict[str, int] = {}
            self._table: Optional[Tensor] = None
            self.n_hits = 0
            self.n_misses = 0

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, words: List[str]) -> Tuple[List[int], Optional[Tensor], List[int]]:
        """Look distinct words up, and mark those found as used. RETURNS indices of the words found,
        their vectors, shape (n_found, width), or None, and indices of the others."""
        hits: List[int] = []
        rows: List[int] = []
        misses: List[int] = []
        with CACHE_LOCK:
            # Taken out while it changes: an interrupt (Ctrl-C) leaves an empty cache.
            known, self._rows = self._rows, {}
            for i, word in enumerate(words):
                row = known.pop(word, None)
                if row is None:
                    misses.append(i)
                else:
                    # A dict keeps its order: a word that is put in again comes last.
                    known[word] = row
                    hits.append(i)
                    rows.append(row)
            vectors = take_rows(self._table, rows) if self._table is not None and rows else None
            self._rows = known
            self.n_hits += len(hits)
            self.n_misses += len(misses)
        return hits, vectors, misses

    def put(self, words: List[str], vectors: Tensor) -> None:
        """Store distinct words with their vectors, shape (n_words, width), and drop those unused
        longest if there is no room."""
        with CACHE_LOCK:
            # Another thread may have stored some of them since they were looked up.
            new = [
                i
                for i, word in enumerate(words)
                if word not in self._rows and len(word) <= _MAX_LETTERS
            ]
            new = new[: self.capacity]
            if not new:
                return
            if len(new) < len(words):
                words, vectors = [words[i] for i in new], take_rows(vectors, new)
            known, self._rows = self._rows, {}
            n_dropped = max(0, len(known) + len(words) - self.capacity)
            free = [known.pop(word) for word in list(islice(known, n_dropped))]
            n_used = len(known) + n_dropped
            free += range(n_used, n_used + len(words) - n_dropped)
            self._table = self._grow(free[-1] + 1, vectors)
            put_rows(self._table, free, vectors)
            known.update(zip(words, free))
            self._rows = known

    def _grow(self, n_rows: int, vectors: Tensor) -> Tensor:
        """The table, larger if it has fewer rows."""
        old = vectors.new_empty(0, vectors.size(1)) if self._table is None else self._table
        if n_rows <= len(old):
            return old
        larger = vectors.new_empty(min(self.capacity, max(n_rows, 2 * len(old))), vectors.size(1))
        larger[: len(old)] = old
        return larger

    def __deepcopy__(self, memo: Dict[int, Any]) -> "WordCache":
        return WordCache(self.capacity)

    def __reduce__(self) -> Tuple[Any, ...]:
        return WordCache, (self.capacity,)


# Below, rows are copied by NumPy in the calling thread alone. torch would start more threads,
# which then wait actively for more work on a processor that a direction needs.


def take_rows(X: Tensor, rows: Rows) -> Tensor:
    """A copy of rows of a matrix."""
    if X.device.type == "cpu":
        return torch.from_numpy(X.numpy().take(rows, axis=0))
    return X.index_select(0, _make_index(rows, X))


def put_rows(X: Tensor, rows: Rows, values: Tensor) -> None:
    """Replace rows of a matrix, each given once, by values of shape (n_put, width)."""
    if X.device.type == "cpu":
        X.numpy()[rows] = values.numpy()
    else:
        X.index_copy_(0, _make_index(rows, X), values)


def _make_index(rows: Rows, X: Tensor) -> Tensor:
    if isinstance(rows, Tensor):
        return rows
    return torch.tensor(rows, dtype=torch.int64, device=X.device)
