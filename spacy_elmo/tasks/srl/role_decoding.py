"""Scores of tags -> the best tags that are BIO, by Viterbi's algorithm.

The model knows nothing of transitions (He et al. 2017): a tag sequence scores as much as its tags,
if an I follows a B or I of its role, and the predicate stands where it is. So a step
compares an I with two tags, and all others with the best of any: its time grows with the number of
tags, not with its square.
"""

from typing import List, Sequence

import numpy as np
from numpy.typing import NDArray
from thinc.types import Floats2d

from .clauses import Clause

_NEVER = -np.inf


def decode_roles(
    scores: Sequence[Floats2d], clauses: Sequence[Clause], *, fixed: bool
) -> List[List[int]]:
    """Find the best tags of clauses.

    scores (Sequence[Floats2d]): of each clause shape (n_tokens, n_tags), logits.
    clauses (Sequence[Clause]): the clauses.
    fixed (bool): whether all tokens of the predicates are known, not only the first.
    RETURNS (List[List[int]]): the tags of each clause.
    """
    decoded: List[List[int]] = [[] for _ in clauses]
    # Clauses of one length have no padding.
    groups: dict = {}
    for i, clause in enumerate(clauses):
        groups.setdefault(clause.n_tokens, []).append(i)
    for group in groups.values():
        stacked = np.stack([_constrain(scores[i], clauses[i], fixed) for i in group])
        for i, tags in zip(group, _decode(stacked)):
            decoded[i] = tags.tolist()
    return decoded


def _constrain(scores: Floats2d, clause: Clause, fixed: bool) -> NDArray:
    """Scores of tags, those that cannot be lowered: shape (n_tokens, n_tags)."""
    X = log_softmax(np.asarray(scores, dtype="float64"))
    start, end = (place - clause.start for place in clause.predicate)
    X[np.arange(len(X)) != start, 1] = _NEVER
    X[start, np.arange(X.shape[1]) != 1] = _NEVER
    if fixed:
        X[start + 1 : end, np.arange(X.shape[1]) != 2] = _NEVER
        X[end:, 2] = _NEVER
    return X


def log_softmax(X: NDArray) -> NDArray:
    """X (NDArray): logits, shape (n, n_tags). RETURNS (NDArray): logarithms of probabilities."""
    X = X - X.max(axis=1, keepdims=True)
    return X - np.log(np.exp(X).sum(axis=1, keepdims=True))


def _decode(X: NDArray) -> NDArray:
    """X: shape (n, n_tokens, n_tags). RETURNS: shape (n, n_tokens)."""
    n, n_tokens, n_tags = X.shape
    every = np.arange(n)
    insides = np.arange(2, n_tags, 2)
    before = np.zeros((n_tokens, n, n_tags), dtype="int64")
    best = X[:, 0].copy()
    best[:, insides] = _NEVER
    for t in range(1, n_tokens):
        before[t] = best.argmax(axis=1)[:, None]
        from_begin = best[:, insides - 1] > best[:, insides]  # (n, n_labels)
        before[t][:, insides] = np.where(from_begin, insides - 1, insides)
        best = best[every[:, None], before[t]] + X[:, t]
    tags = np.empty((n, n_tokens), dtype="int64")
    tags[:, -1] = best.argmax(axis=1)
    for t in range(n_tokens - 1, 0, -1):
        tags[:, t - 1] = before[t][every, tags[:, t]]
    return tags
