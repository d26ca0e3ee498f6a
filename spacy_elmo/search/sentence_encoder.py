"""`SentenceEncoder`: one vector for a sentence."""

from dataclasses import dataclass, field
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from ..inference.embedder import Embedder
from ..utils import normalise

# Arora et al. 2017, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings"; Su et al.
# 2021, "Whitening Sentence Representations".
WEIGHTINGS = ("mean", "sif", "whitened")
_A = 1e-3
# Added to the singular values, as a share of the largest: small ones are mostly noise.
_RIDGE = 0.02

# Words of a sentence -> the mean of their vectors, shape (width,).
Averages = Mapping[Tuple[str, ...], NDArray]


class Transform(NamedTuple):
    """centre (NDArray): to subtract, shape (width,). matrix (NDArray): to multiply with,
    shape (width, width)."""

    centre: NDArray
    matrix: NDArray


@dataclass
class SentenceEncoder:
    """Average the vectors of a sentence's words, and normalise.

    embedder (Embedder): makes them.
    layer (int): of the biLM; 0 is the word layer, -1 the top one.
    counts (Optional[Dict[str, int]]): of words in lower case, for smooth inverse
        frequency: a word weighs a / (a + p); None for equal weights.
    transform (Optional[Transform]): applied to the averages.
    known (Averages): of sentences that were averaged before, with equal weights: they are not
        computed again.
    """

    embedder: Embedder
    layer: int
    counts: Optional[Dict[str, int]] = None
    transform: Optional[Transform] = None
    known: Averages = field(default_factory=dict)

    def encode(self, sentences: Sequence[Sequence[str]]) -> NDArray:
        """sentences (Sequence[Sequence[str]]): words of each. RETURNS (NDArray): float32,
        shape (n_sentences, width), of length 1, or 0 for no words."""
        X = self._finish(self.average(sentences))
        # Whitening would move what has no words away from 0.
        X[[not words for words in sentences]] = 0.0
        return X

    def average(self, sentences: Sequence[Sequence[str]]) -> NDArray:
        """sentences (Sequence[Sequence[str]]): words of each. RETURNS (NDArray): weighted
        means of their vectors, float32, shape (n_sentences, width); 0 for no words."""
        X = np.zeros((len(sentences), self.embedder.bilm.config.width), dtype="float32")
        known = self.known if self.counts is None else {}
        averages = [known.get(tuple(words)) for words in sentences]
        for row, average in zip(X, averages):
            row[:] = 0.0 if average is None else average
        missing = [i for i, average in enumerate(averages) if average is None and sentences[i]]
        X[missing] = self._compute([sentences[i] for i in missing])
        return X

    def _compute(self, sentences: Sequence[Sequence[str]]) -> NDArray:
        """As `average`, for at least one word in each."""
        total = sum(self.counts.values()) if self.counts else 1
        X = np.zeros((len(sentences), self.embedder.bilm.config.width), dtype="float32")
        vectors = self.embedder.embed_layer(sentences, self.layer)
        for row, words, W in zip(X, sentences, vectors):
            weights = [self._weigh(word, total) for word in words]
            row[:] = np.average(W, axis=0, weights=weights)
        return X

    def _finish(self, X: NDArray) -> NDArray:
        if self.transform is not None:
            X = (X - self.transform.centre) @ self.transform.matrix
        return normalise(X).astype("float32")

    def _weigh(self, word: str, total: int) -> float:
        if self.counts is None:
            return 1.0
        return _A / (_A + self.counts.get(word.lower(), 0) / total)

    def find_token(self, words: List[str], vector: NDArray) -> int:
        """Find the word of a sentence that is nearest to a query.

        words (List[str]): of the sentence, at least one.
        vector (NDArray): of a query, shape (width,).
        RETURNS (int): its position.
        """
        (W,) = self.embedder.embed_layer([words], self.layer)
        return int(np.argmax(self._finish(W) @ vector))


def count_needed(weighting: str, width: int) -> int:
    """weighting (str): one of `WEIGHTINGS`. width (int): of the averages. RETURNS (int): the
    sentences that `fit_transform` needs at least; 0 if there is nothing to fit."""
    return {"mean": 0, "sif": 2, "whitened": width}[weighting]


def fit_transform(X: NDArray, weighting: str) -> Optional[Transform]:
    """Fit the transform that makes averages comparable.

    X (NDArray): averages of sentences, shape (n, width).
    weighting (str): one of `WEIGHTINGS`. "sif" takes their common direction out (the first
        right singular vector), "whitened" gives all directions the same variance.
    RETURNS (Optional[Transform]): in float64, the matrix of shape (width, width); None for
        "mean", and for fewer than `count_needed`.
    """
    width = X.shape[1]
    if weighting == "mean" or len(X) < count_needed(weighting, width):
        return None
    X = X.astype("float64")
    if weighting == "sif":
        common = np.linalg.svd(X, full_matrices=False)[2][0]
        return Transform(np.zeros(width), np.eye(width) - np.outer(common, common))
    centre = X.mean(axis=0)
    _, scales, directions = np.linalg.svd(X - centre, full_matrices=False)
    scales = scales + _RIDGE * scales[0]
    # Equal sentences have no directions.
    return Transform(centre, directions.T / np.where(scales == 0, 1.0, scales))
