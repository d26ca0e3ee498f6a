"""`SentenceEncoder`: one vector for each sentence; and a search for the most similar vectors."""

from dataclasses import dataclass
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors
from ..inference.embedder import Embedder
from ..utils import normalise

try:
    import faiss
except ImportError:
    faiss = None  # type: ignore[assignment]

BACKENDS = ("numpy", "faiss")
# Rows that are compared at a time.
_N_ROWS = 100_000
# Arora et al. 2017, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings"; Su et al.
# 2021, "Whitening Sentence Representations".
WEIGHTINGS = ("mean", "sif", "whitened")
_A = 1e-3
# Added to the singular values, as a share of the largest: small ones are mostly noise.
_RIDGE = 0.02


class Transform(NamedTuple):
    """Subtracts the centre, and multiplies with the matrix."""

    centre: NDArray  # (width,)
    matrix: NDArray  # (width, width)


@dataclass(frozen=True)
class SentenceEncoder:
    """Average the vectors of a sentence's words, apply a transform, and normalise. With counts of
    words in lower case, a word weighs a / (a + p) (smooth inverse frequency); without, all are
    equal."""

    embedder: Embedder
    layer: int
    counts: Optional[Dict[str, int]] = None
    transform: Optional[Transform] = None

    def encode(self, sentences: Sequence[Sequence[str]]) -> NDArray:
        """Vectors of length 1, or 0 for no words, shape (n_sentences, width)."""
        X = self.finish(self.average(sentences))
        # Whitening moves a vector of zeros.
        X[[not words for words in sentences]] = 0.0
        return X

    def average(self, sentences: Sequence[Sequence[str]]) -> NDArray:
        """Weighted means of the words' vectors, shape (n_sentences, width); 0 for no words."""
        total = sum(self.counts.values()) if self.counts else 1
        X = np.zeros((len(sentences), self.embedder.bilm.config.width), dtype="float32")
        vectors = self.embedder.embed_layer(sentences, self.layer)
        for row, words, W in zip(X, sentences, vectors):
            if words:
                weights = None
                if self.counts is not None:
                    shares = (self.counts.get(word.lower(), 0) / total for word in words)
                    weights = [_A / (_A + share) for share in shares]
                row[:] = np.average(W, axis=0, weights=weights)
        return X

    def finish(self, X: NDArray) -> NDArray:
        """Transform averages, shape (n, width), and normalise."""
        if self.transform is not None:
            X = (X - self.transform.centre) @ self.transform.matrix
        return normalise(X).astype("float32")

    def find_token(self, words: List[str], vector: NDArray) -> int:
        """Position of the word that is most similar to a query, shape (width,)."""
        (W,) = self.embedder.embed_layer([words], self.layer)
        return int(np.argmax(self.finish(W) @ vector))


def count_needed(weighting: str, width: int) -> int:
    """Sentences that `fit_transform` needs at least; 0 if there is nothing to fit."""
    return {"mean": 0, "sif": 2, "whitened": width}[weighting]


def fit_transform(X: NDArray, weighting: str) -> Optional[Transform]:
    """Fit the transform that makes averages, shape (n, width), comparable: "sif" takes their
    common direction out (the first right singular vector), "whitened" gives all directions the
    same variance. None for "mean", and for fewer than `count_needed`."""
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


def search_vectors(
    X: NDArray, query: NDArray, n: int, *, backend: str = "numpy"
) -> List[Tuple[int, float]]:
    """Find the n rows of X, shape (n_rows, width), with the largest products with a query. X may
    be mapped from a file: it is read in parts."""
    require_backend(backend)
    search = _search_faiss if backend == "faiss" else _search_numpy
    best: List[Tuple[float, int]] = []
    for first in range(0, len(X), _N_ROWS):
        rows, scores = search(X[first : first + _N_ROWS], query, n)
        # Minus the row: of equals, the first one.
        best += [(float(score), -(first + int(row))) for row, score in zip(rows, scores)]
        best = sorted(best, reverse=True)[:n]
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
    """Check that the package of a backend is there."""
    if backend == "faiss" and faiss is None:
        what = "The backend 'faiss'"
        raise ValueError(Errors.EL038.format(purpose=what, package="faiss-cpu", extra="search"))
