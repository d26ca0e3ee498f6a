"""`WordCache`: a bounded store of word vectors, keyed by the word's text."""

from itertools import islice
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple, Union

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .threads import CACHE_LOCK

Rows = Union[Tensor, List[int]]


def take_rows(X: Tensor, rows: Rows) -> Tensor:
    """X (Tensor): shape (n_rows, width). rows (Rows): int64, (n_taken,). RETURNS (Tensor): a copy
    of these rows, (n_taken, width)."""
    return X.index_select(0, _make_index(rows, X))


def put_rows(X: Tensor, rows: Rows, values: Tensor) -> None:
    """X (Tensor): changed, shape (n_rows, width). rows (Rows): int64, (n_put,), each once.
    values (Tensor): what these rows become, (n_put, width)."""
    X.index_copy_(0, _make_index(rows, X), values)


def clear_other_rows(X: Tensor, rows: Sequence[Union[Sequence[int], NDArray]]) -> None:
    """Fill rows with zeros. To fill all first takes some hundredths of what fills the others.

    X (Tensor): changed, shape (n_rows, ...). rows (Sequence[Union[Sequence[int], NDArray]]): which
        ones are left as they are.
    """
    is_other = np.ones(len(X), dtype=bool)
    for own in rows:
        is_other[own] = False
    others = np.flatnonzero(is_other)
    if X.is_cpu:
        X.numpy()[others] = 0.0
    else:
        X[torch.from_numpy(others).to(X.device)] = 0.0


def _make_index(rows: Rows, X: Tensor) -> Tensor:
    if isinstance(rows, Tensor):
        return rows
    return torch.tensor(rows, dtype=torch.int64, device=X.device)


# Letters of a word that is kept. Of longer ones, which no word of a language is, a few thousand
# take as much memory as all others.
_MOST_LETTERS = 256
# A table is never written to before it has rows.
_NO_ROWS = torch.empty(0)


class _Store(NamedTuple):
    """rows (Dict[str, int]): the row of each word, the word unused longest first.
    table (Tensor): vectors, shape (n_rows, width); some rows may be of no word yet."""

    rows: Dict[str, int]
    table: Tensor


class WordCache:
    """Keep the vectors of the words used last. A hit returns the stored bits.

    Text is Zipfian: most words of the next batch were in an earlier one, and the
    convolutions cost as much as a small LSTM. Copies and pickles of a cache are
    empty: what they belong to may get other weights.

    An interrupt (Ctrl-C) may come between any two steps. So whoever changes the store
    takes it out first, and puts it back when all words have rows of their own again:
    what was interrupted leaves an empty cache, never a wrong one.

    capacity (int): words kept, each of at most 256 letters; 0 keeps none.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.clear()

    def clear(self) -> None:
        """Forget all words and the counts."""
        with CACHE_LOCK:
            self._store = _make_empty()
            self.n_hits = 0
            self.n_misses = 0

    def __len__(self) -> int:
        return len(self._store.rows)

    def get(self, words: List[str]) -> Tuple[List[int], Tensor, List[int]]:
        """Look words up, and mark those found as used.

        words (List[str]): distinct words.
        RETURNS (Tuple[List[int], Tensor, List[int]]): indices of the words found,
            their vectors, shape (n_found, width), and indices of the others.
        """
        hits: List[int] = []
        rows: List[int] = []
        misses: List[int] = []
        with CACHE_LOCK:
            known, table = self._take_store()
            for i, word in enumerate(words):
                row = known.pop(word, None)
                if row is None:
                    misses.append(i)
                else:
                    # Python's dicts keep their order: what is put in again comes last.
                    known[word] = row
                    hits.append(i)
                    rows.append(row)
            vectors = take_rows(table, rows)
            self._store = _Store(known, table)
            self.n_hits += len(hits)
            self.n_misses += len(misses)
        return hits, vectors, misses

    def put(self, words: List[str], vectors: Tensor) -> None:
        """Store words, but for those of more than 256 letters, and drop those unused longest if
        there is no room. What another thread has stored since they were looked for stays.

        words (List[str]): distinct words.
        vectors (Tensor): their vectors, shape (n_words, width).
        """
        with CACHE_LOCK:
            known = self._store.rows
            new = [
                i
                for i, word in enumerate(words)
                if word not in known and len(word) <= _MOST_LETTERS
            ]
            new = new[: self.capacity]
            if not new:
                return
            if len(new) < len(words):
                words, vectors = [words[i] for i in new], take_rows(vectors, new)
            known, table = self._take_store()
            n_dropped = max(0, len(known) + len(words) - self.capacity)
            free = [known.pop(word) for word in list(islice(known, n_dropped))]
            n_used = len(known) + n_dropped
            free += range(n_used, n_used + len(words) - n_dropped)
            table = _grow(table, free[-1] + 1, self.capacity, vectors)
            put_rows(table, free, vectors)
            known.update(zip(words, free))
            self._store = _Store(known, table)

    def _take_store(self) -> _Store:
        store, self._store = self._store, _make_empty()
        return store

    def __deepcopy__(self, memo: Dict[int, Any]) -> "WordCache":
        return WordCache(self.capacity)

    def __reduce__(self) -> Tuple[Any, ...]:
        return WordCache, (self.capacity,)


def _make_empty() -> _Store:
    return _Store({}, _NO_ROWS)


def _grow(table: Tensor, n_rows: int, capacity: int, like: Tensor) -> Tensor:
    """RETURNS (Tensor): the table with at least as many rows."""
    n_old = len(table)
    if n_rows <= n_old:
        return table
    larger = like.new_empty(min(capacity, max(n_rows, 2 * n_old)), like.size(1))
    if n_old:
        larger[:n_old] = table
    return larger
