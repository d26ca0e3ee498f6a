"""A linear layer over arrays side by side, which are never made into one."""

from typing import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from .dropout import drop


def map_parts(linear: nn.Linear, parts: Sequence[Tensor], dropout: float) -> Tensor:
    """As `linear(drop(torch.cat(parts, -1), dropout))`, without the copy of all parts, on the way
    there and back.

    linear (nn.Linear): with a bias; as many inputs as the parts have numbers together.
    parts (Sequence[Tensor]): at least one, of shapes (..., n).
    dropout (float): probability that a number of a part is dropped.
    RETURNS (Tensor): shape (..., nO).
    """
    weights = linear.weight.split([part.shape[-1] for part in parts], dim=1)
    first, *others = (
        F.linear(drop(part, dropout), weight) for part, weight in zip(parts, weights, strict=True)
    )
    return sum(others, first + linear.bias)
