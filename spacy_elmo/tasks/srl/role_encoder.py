"""`RoleEncoder`: the tokens of a clause -> rows that know which predicate is meant.

The deep LSTM of He et al. (2017, "Deep Semantic Role Labeling: What Works and What's Next"):
layers read in alternating directions, each with a highway connection around it and one dropout
mask for all tokens of a clause. Their highway gates stand inside of the recurrence, ours around
the layer, so that it is torch's own LSTM that runs.
"""

from typing import List, NamedTuple, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence


class Order(NamedTuple):
    """How clauses are packed: first tokens of all, longest clause first, then second tokens.

    rows (Tensor): shape (n_tokens,), packed place -> row, clause after clause.
    places (Tensor): shape (n_tokens,), the other way round.
    flipped (Tensor): shape (n_tokens,), packed place -> that of the token as far from the
        clause's end as this one is from its start.
    clauses (Tensor): shape (n_tokens,), packed place -> which clause, by length.
    batch_sizes (Tensor): shape (most_tokens,), clauses that have a first, second, ... token.
    """

    rows: Tensor
    places: Tensor
    flipped: Tensor
    clauses: Tensor
    batch_sizes: Tensor


def make_order(sizes: List[int]) -> Order:
    """sizes (List[int]): tokens of the clauses, each at least 1. RETURNS (Order): of them."""
    by_length = np.argsort([-size for size in sizes], kind="stable")
    ordered = np.array(sizes)[by_length]  # (n_clauses,)
    starts = (np.cumsum(sizes) - sizes)[by_length]
    batch_sizes = (ordered[None] > np.arange(ordered[0])[:, None]).sum(1)
    steps = np.repeat(np.arange(ordered[0]), batch_sizes)  # (n_tokens,)
    first_of_step = np.cumsum(batch_sizes) - batch_sizes
    clauses = np.arange(len(steps)) - first_of_step[steps]
    rows = starts[clauses] + steps
    flipped = first_of_step[ordered[clauses] - 1 - steps] + clauses
    arrays: Tuple[NDArray, ...] = (rows, np.argsort(rows), flipped, clauses, batch_sizes)
    return Order(*(torch.from_numpy(array.astype("int64")) for array in arrays))


class RoleEncoder(nn.Module):
    """nI (int): width of the input. n_past (int): its last numbers, which go past the layers, and
    stand behind their output. width (int): of the layers. depth (int): layers."""

    def __init__(self, nI: int, n_past: int = 0, *, width: int, depth: int) -> None:
        super().__init__()
        self.n_past = n_past
        self.project = nn.Linear(nI - n_past, width)
        self.indicator = nn.Embedding(2, width)
        self.lstms = nn.ModuleList(nn.LSTM(width, width) for _ in range(depth))
        self.gates = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(
        self,
        X: Tensor,
        lengths: List[int],
        rows: NDArray,
        marks: NDArray,
        sizes: List[int],
        dropout: float = 0.0,
    ) -> Tensor:
        """X (Tensor): shape (n_rows, nI), docs put end to end. lengths (List[int]): of the docs.
        rows, marks (NDArray): see `find_rows`. sizes (List[int]): tokens of the clauses.
        dropout (float): on what goes into each layer, and on the output.
        RETURNS (Tensor): shape (n_tokens, width + n_past), clause after clause."""
        X, past = X.split([X.shape[1] - self.n_past, self.n_past], dim=1)
        order = Order(*(tensor.to(X.device) for tensor in make_order(sizes)))
        # Once for each token, however many predicates its sentence has.
        Y = self.project(X)[torch.from_numpy(rows).to(X.device)[order.rows]]
        Y = Y + self.indicator(torch.from_numpy(marks).long().to(X.device)[order.rows])
        for lstm, gate in zip(self.lstms, self.gates):
            Y = self._drop(Y, order, dropout)
            # torch wants these on the CPU.
            packed = PackedSequence(Y, order.batch_sizes.cpu())
            carried = torch.sigmoid(gate(Y))
            Y = (1 - carried) * lstm(packed)[0].data + carried * Y
            Y = Y[order.flipped]
        if len(self.lstms) % 2:
            Y = Y[order.flipped]
        Y = self._drop(Y, order, dropout)[order.places]
        return torch.cat([Y, past[torch.from_numpy(rows).to(X.device)]], dim=1)

    @staticmethod
    def _drop(Y: Tensor, order: Order, dropout: float) -> Tensor:
        if not dropout:
            return Y
        n_clauses = int(order.batch_sizes[0])
        mask = Y.new_empty(n_clauses, Y.shape[1]).bernoulli_(1 - dropout) / (1 - dropout)
        return Y * mask[order.clauses]
