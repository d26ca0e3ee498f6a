"""Rows of a matrix by their numbers, in the calling thread alone.

`X[rows]` begins torch's own threads from 3,000 numbers on. They wait actively for more
work, with a processor that a direction of the biLM needs.
"""

from typing import List, Union

import torch
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


def _make_index(rows: Rows, X: Tensor) -> Tensor:
    if isinstance(rows, Tensor):
        return rows
    return torch.tensor(rows, dtype=torch.int64, device=X.device)
