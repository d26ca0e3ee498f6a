"""`WordTable`: words -> vectors by looking them up, for biLMs that read no characters."""

from hashlib import blake2b
from typing import Optional, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .batch import BOS_WORD, EOS_WORD
from .config import N_SPECIAL_WORDS, BiLMConfig

# Rows of `special`; every other word that is not in the table is the third.
_SPECIAL = {BOS_WORD: 0, EOS_WORD: 1}
_UNKNOWN = N_SPECIAL_WORDS - 1


class WordTable(nn.Module):
    """A vector for each word. With `input = "words"` the vectors are trained; with
    `input = "vectors"` they are given, stay as they are, and are projected.

    Words are kept as hashes of their text, so that the table is stored with the weights
    and has a known shape. A table without words knows the boundaries and the unknown.

    Source: Peters et al. 2018, section 3.4 (the paper's context-independent inputs);
    bilm-tf's word models.
    """

    keys: Tensor
    vectors: Tensor

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        width = config.vector_width or config.direction_width
        # Ascending, so that a word is found by bisection; no hash before it is filled.
        self.register_buffer("keys", torch.arange(config.n_words, dtype=torch.int64))
        vectors = torch.empty(config.n_words, width).normal_(std=width**-0.5)
        self.projection: Optional[nn.Linear] = None
        if config.input == "words":
            self.vectors = nn.Parameter(vectors)
        else:
            self.register_buffer("vectors", vectors)
            self.projection = nn.Linear(width, config.direction_width)
        self.special = nn.Parameter(torch.empty(N_SPECIAL_WORDS, width).normal_(std=width**-0.5))

    @torch.no_grad()
    def fill(self, words: Sequence[str], vectors: Optional[Tensor] = None) -> None:
        """Give the rows distinct words and, unless it is None, their vectors."""
        hashes = _hash_words(words)
        order = np.argsort(hashes)
        self.keys.copy_(torch.from_numpy(hashes[order]))
        if vectors is not None:
            self.vectors.copy_(vectors[torch.from_numpy(order)])

    def find(self, words: Sequence[str]) -> Tensor:
        """Rows of any words for `forward`, int64, shape (n_words,)."""
        keys = self.keys.cpu().numpy()
        rows = np.full(len(words), _UNKNOWN, dtype=np.int64)
        if len(keys):
            hashes = _hash_words(words)
            places = np.searchsorted(keys, hashes).clip(max=len(keys) - 1)
            rows = np.where(keys[places] == hashes, places + N_SPECIAL_WORDS, _UNKNOWN)
        for i, word in enumerate(words):
            rows[i] = _SPECIAL.get(word, rows[i])
        return torch.from_numpy(rows)

    def forward(self, rows: Tensor) -> Tensor:
        """rows (Tensor): from `find`. RETURNS (Tensor): vectors, shape (n_words, width // 2)."""
        X = self.special[rows.clamp(max=_UNKNOWN)]
        if len(self.vectors):
            is_special = (rows < N_SPECIAL_WORDS)[:, None]
            X = torch.where(is_special, X, self.vectors[(rows - N_SPECIAL_WORDS).clamp(min=0)])
        return X if self.projection is None else self.projection(X)


def _hash_words(words: Sequence[str]) -> NDArray:
    texts = [word.encode("utf-8", "surrogatepass") for word in words]
    digests = [blake2b(text, digest_size=8).digest() for text in texts]
    return np.frombuffer(b"".join(digests), dtype="<i8").astype(np.int64)
