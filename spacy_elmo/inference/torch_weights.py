"""The weights of an LSTM layer as torch's own LSTM has them."""

from typing import Dict

import torch
from torch import Tensor

from ..bilm.lstm import LSTMLayer


def find_torch_weights(layer: LSTMLayer) -> Dict[str, Tensor]:
    """layer (LSTMLayer): without clips, which torch's LSTM does not know. RETURNS
    (Dict[str, Tensor]): copies, by the names of `nn.LSTM`, in the order of its parameters."""
    width = layer.weight.size(0) // 2
    weight, bias = _swap_gates(layer.weight.detach().t()), _swap_gates(layer.bias.detach())
    weights = {
        "weight_ih_l0": weight[:, :width].contiguous(),
        "weight_hh_l0": weight[:, width:].contiguous(),
        "bias_ih_l0": bias,
        "bias_hh_l0": torch.zeros_like(bias),
    }
    if layer.projection is not None:
        weights["weight_hr_l0"] = layer.projection.detach().t().contiguous()
    return weights


def _swap_gates(X: Tensor) -> Tensor:
    """Rows of the gates i, f, o, j in torch's order: i, f, j, o."""
    i, f, o, j = X.chunk(4)
    return torch.cat([i, f, j, o])
