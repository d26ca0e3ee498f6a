"""`WordCache`: a bounded store of word vectors, keyed by the word's text."""

from typing import Any, Dict, List, Tuple

import torch
from torch import Tensor


class WordCache:
    """Keep the vectors of the words used last. A hit returns the stored bits.

    Text is Zipfian: most words of the next batch were in an earlier one, and the
    convolutions cost as much as a small LSTM. Copies and pickles of a cache are
    empty: what they belong to may get other weights.

    capacity (int): words kept; 0 keeps none.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.clear()

    def clear(self) -> None:
        """Forget all words and the counts."""
        # Python's dicts keep their order: the first key is the word unused longest.
        self._rows: Dict[str, int] = {}
        self._table = torch.empty(0)
        self.n_hits = 0
        self.n_misses = 0

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, words: List[str]) -> Tuple[List[int], Tensor, List[int]]:
        """Look words up, and mark those found as used.

        words (List[str]): distinct words.
        RETURNS (Tuple[List[int], Tensor, List[int]]): indices of the words found,
            their vectors, shape (n_found, width), and indices of the others.
        """
        found: List[int] = []
        rows: List[int] = []
        missing: List[int] = []
        for i, word in enumerate(words):
            row = self._rows.pop(word, None)
            if row is None:
                missing.append(i)
            else:
                self._rows[word] = row
                found.append(i)
                rows.append(row)
        self.n_hits += len(found)
        self.n_misses += len(missing)
        return found, self._table[rows], missing

    def put(self, words: List[str], vectors: Tensor) -> None:
        """Store words, and drop those unused longest if there is no room.

        words (List[str]): distinct words, none of them stored.
        vectors (Tensor): their vectors, shape (n_words, width).
        """
        words, vectors = words[: self.capacity], vectors[: self.capacity]
        if not words:
            return
        n_dropped = max(0, len(self._rows) + len(words) - self.capacity)
        free = [self._rows.pop(next(iter(self._rows))) for _ in range(n_dropped)]
        n_used = len(self._rows) + n_dropped
        rows = free + list(range(n_used, n_used + len(words) - n_dropped))
        self._grow(rows[-1] + 1, vectors)
        self._table[rows] = vectors
        self._rows.update(zip(words, rows))

    def _grow(self, n_rows: int, like: Tensor) -> None:
        n_old = len(self._table)
        if n_rows <= n_old:
            return
        n_new = min(self.capacity, max(n_rows, 2 * n_old))
        table = like.new_empty(n_new, like.size(1))
        if n_old:
            table[:n_old] = self._table
        self._table = table

    def __deepcopy__(self, memo: Dict[int, Any]) -> "WordCache":
        return WordCache(self.capacity)

    def __reduce__(self) -> Tuple[Any, ...]:
        return WordCache, (self.capacity,)
