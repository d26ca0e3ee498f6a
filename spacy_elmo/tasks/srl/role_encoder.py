"""`RoleEncoder`: the tokens of a clause -> rows that know which predicate is meant.

The deep LSTM of He et al. (2017, "Deep Semantic Role Labeling: What Works and What's Next"):
layers read in alternating directions, each with a highway connection around it and one dropout
mask for all tokens of a clause. Their highway gates stand inside of the recurrence, ours around
the layer, so that it is torch's own LSTM that runs.
"""

from typing import Iterable, List, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..shared.sequence_lstm import order_sequences, run_lstm


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
        read = torch.from_numpy(rows).to(X.device)
        order = order_sequences(sizes, X)
        # Once for each token, however many predicates its sentence has.
        Y = self.project(X)[read]
        Y = Y + self.indicator(torch.from_numpy(marks).long().to(X.device))
        lstms = cast(Iterable[nn.LSTM], self.lstms)
        clauses = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes)).to(X.device)
        for i, (lstm, gate) in enumerate(zip(lstms, self.gates)):
            Y = _drop(Y, clauses, dropout)
            carried = torch.sigmoid(gate(Y))
            Y = (1 - carried) * run_lstm(lstm, Y, order, backward=i % 2 == 1) + carried * Y
        return torch.cat([_drop(Y, clauses, dropout), past[read]], dim=1)


def _drop(Y: Tensor, clauses: Tensor, dropout: float) -> Tensor:
    """Y (Tensor): shape (n_tokens, width). clauses (Tensor): shape (n_tokens,), which clause each
    token is of, rising. RETURNS (Tensor): with one mask for all tokens of a clause."""
    if not dropout:
        return Y
    n_clauses = int(clauses[-1]) + 1
    mask = Y.new_empty(n_clauses, Y.shape[1]).bernoulli_(1 - dropout) / (1 - dropout)
    return Y * mask[clauses]
