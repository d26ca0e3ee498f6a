"""Rows of a matrix by their numbers, in the calling thread alone.

`X[rows]` begins torch's own threads from 3,000 numbers on. They wait actively for more
work, with a processor that a direction of the biLM needs.
"""

from typing import List, Sequence, Union

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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
