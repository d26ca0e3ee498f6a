"""Arithmetic of vectors."""

from numpy.typing import NDArray
from thinc.api import get_array_module


def normalise(X: NDArray) -> NDArray:
    """X (NDArray): vectors, shape (..., width). RETURNS (NDArray): the same of length 1;
    those of zeros stay zeros."""
    xp = get_array_module(X)
    norms = xp.linalg.norm(X, axis=-1, keepdims=True)
    return X / xp.where(norms == 0, 1.0, norms)
