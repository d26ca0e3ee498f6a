"""Dropout of the tasks' torch modules: `Dropout`, how much, and `drop`, which does it."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import Errors
from ...layers.scalar_mix import N_VALUES, round_rate


@dataclass(frozen=True)
class Dropout:
    """A dropout of a torch layer. A dataclass, so that Thinc does not store it with the weights.

    rate (float): probability in [0, 1), in training. Not driven by [training] dropout.
    """

    rate: float

    def __post_init__(self) -> None:
        """RAISES (ValueError): EL191 for a rate out of range."""
        if not 0 <= self.rate < 1:
            raise ValueError(Errors.EL191.format(value=self.rate))


def drop(X: Tensor, rate: float) -> Tensor:
    """As torch's `dropout` in training, on a CPU in a fraction of its time: torch draws random bits
    for each number, this one 64 for each four.

    X (Tensor): any shape.
    rate (float): probability in [0, 1) that a number becomes 0, rounded to a 65,536th; the others
        are scaled, so that their mean stays.
    RETURNS (Tensor): of the shape of X; X itself for a rate of 0.
    """
    if not rate:
        return X
    if X.device.type != "cpu":
        return F.dropout(X, rate)
    n_dropped, scale = round_rate(rate)
    draws = torch.empty(-(-X.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    values = draws.view(torch.int16)[: X.numel()].view(X.shape)  # from -2^15 on
    kept = (values >= n_dropped - N_VALUES // 2).to(X.dtype)
    return X * kept.mul_(scale)
