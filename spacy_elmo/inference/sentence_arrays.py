"""The layers of a batch, as arrays of its sentences."""

from typing import List, Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


def make_arrays(n_sentences: int, n_layers: int, width: int) -> List[NDArray]:
    """RETURNS (List[NDArray]): of sentences without a word, float32, shape (n_layers, 0, width)."""
    return [np.zeros((n_layers, 0, width), dtype="float32")] * n_sentences


def copy_arrays(
    layers: Tensor,
    members: List[int],
    sentences: Sequence[Sequence[str]],
    arrays: List[NDArray],
) -> None:
    """Put a batch's layers where they belong, layer first, each with memory of its own.

    layers (Tensor): of the members, one after the other, shape (n_tokens, n_layers, width).
    members (List[int]): which sentences the batch has.
    sentences (Sequence[Sequence[str]]): words of all.
    arrays (List[NDArray]): filled for the members, shape (n_layers, n_tokens, width).
    """
    parts = layers.cpu().split([len(sentences[i]) for i in members])
    for i, part in zip(members, parts):
        arrays[i] = np.array(part.numpy().swapaxes(0, 1), order="C")
