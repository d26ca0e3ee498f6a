"""The weights of an LSTM layer as torch's own LSTM has them, whose gates stand as i, f, j, o."""

from typing import Dict, Optional, Tuple

import torch
from torch import Tensor


def has_torch_layer(
    projection: Optional[Tensor], clips: Tuple[Optional[float], Optional[float]]
) -> bool:
    """projection (Optional[Tensor]): of an LSTM layer, shape (cell_width, width // 2). clips
    (Tuple[Optional[float], Optional[float]]): of its cell and output. RETURNS (bool): Whether torch
    has one like it: without clips, which projects to fewer numbers than it has cells, or not at
    all."""
    is_known = projection is None or projection.size(1) < projection.size(0)
    return is_known and clips == (None, None)


def find_torch_weights(
    weight: Tensor, bias: Tensor, projection: Optional[Tensor]
) -> Dict[str, Tensor]:
    """weight, bias (Tensor), projection (Optional[Tensor]): of an `LSTMLayer` without clips, which
    torch's LSTM does not know. RETURNS (Dict[str, Tensor]): by the names of `nn.LSTM`, in the order
    of its parameters; gradients flow back through them."""
    half = weight.size(0) // 2
    weight, bias = swap_gates(weight).t(), swap_gates(bias)  # weight: (4 * cell_width, width)
    weights = {
        "weight_ih_l0": weight[:, :half].contiguous(),
        "weight_hh_l0": weight[:, half:].contiguous(),
        "bias_ih_l0": bias,
        "bias_hh_l0": torch.zeros_like(bias),
    }
    if projection is not None:
        weights["weight_hr_l0"] = projection.t().contiguous()
    return weights


def swap_gates(X: Tensor) -> Tensor:
    """X (Tensor): shape (..., 4 * cell_width). RETURNS (Tensor): a copy, from either order of the
    gates to the other one."""
    i, f, third, fourth = X.chunk(4, dim=-1)  # each (..., cell_width)
    return torch.cat([i, f, fourth, third], dim=-1)
