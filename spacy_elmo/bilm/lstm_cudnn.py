"""An LSTM layer in cuDNN, all steps in one call, for a GPU that trains with shorter products."""

import warnings
from typing import List, Optional, Tuple

import torch
from torch import Tensor
from torch.backends import cudnn

from .torch_weights import find_torch_weights, has_torch_layer

_SHORT = (torch.bfloat16, torch.float16)


def can_use_cudnn(
    cell: Tensor,
    projection: Optional[Tensor],
    clips: Tuple[Optional[float], Optional[float]],
    dtype: torch.dtype,
) -> bool:
    """cell (Tensor): before the first step. projection, clips: see `has_torch_layer`. dtype
    (torch.dtype): of the products. RETURNS (bool): Whether cuDNN has such a layer, and is as exact:
    its products of float32 may have ten bits (TF32), as many as float16 has and more than
    bfloat16."""
    is_asked = cell.is_cuda and cell.dtype == torch.float32 and dtype in _SHORT
    return is_asked and has_torch_layer(projection, clips) and _is_there()


def _is_there() -> bool:
    return bool(cudnn.enabled and cudnn.is_available())


def run_torch_layer(
    X: Tensor,
    weight: Tensor,
    bias: Tensor,
    projection: Optional[Tensor],
    state: Tuple[Tensor, Tensor],
    batch_sizes: List[int],
) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
    """As `run_layer` without clips, by torch's own LSTM in the type of the state: on a GPU that is
    cuDNN's."""
    weights = list(find_torch_weights(weight, bias, projection).values())
    sizes = torch.tensor(batch_sizes, device="cpu")  # (n_steps,)
    before = [part[None].contiguous() for part in state]  # (1, n_seqs, half or cell_width)
    X = X.to(bias.dtype)  # (n_rows, half)
    with warnings.catch_warnings():
        # They are copied into one piece of memory each time.
        warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous")
        # One layer, no dropout, one direction; "train" keeps what the gradient needs.
        Y, hidden, cell = torch.lstm(X, sizes, before, weights, True, 1, 0.0, True, False)
    return Y, (hidden[0], cell[0])
