"""A step of an LSTM layer in one kernel of a GPU, for layers whose cells have no clip: starting the
dozens of small kernels that `lstm_steps` needs takes longer than what they compute.

The kernel is torch's own. Its gates stand as i, f, j, o, those of `LSTMLayer` as i, f, o, j.
"""

from typing import Optional, Tuple

import torch
from torch import Tensor

_KERNELS = ("_thnn_fused_lstm_cell", "_thnn_fused_lstm_cell_backward_impl")


def can_fuse(X: Tensor, cell_clip: Optional[float]) -> bool:
    """X (Tensor): inputs. cell_clip (Optional[float]): bound of the cell. RETURNS (bool):
    Whether there is such a kernel."""
    return X.is_cuda and cell_clip is None and has_kernels()


def has_kernels() -> bool:
    """RETURNS (bool): Whether torch has the kernels, which are not public."""
    return all(hasattr(torch.ops.aten, name) for name in _KERNELS)


def fused_step(sums: Tensor, a: Tensor, before: Tensor, cell: Tensor) -> Tensor:
    """As `lstm_steps.step`, in the kernel's order of gates. RETURNS m, (n, cell_width)."""
    # The kernel adds up two parts of the sums; here they are added up already.
    sums = sums.to(before.dtype)
    m, after, activations = run_cell(sums, torch.zeros_like(sums), before)
    a.copy_(activations)
    cell.copy_(after)
    return m


def fused_step_back(
    a: Tensor, cell: Tensor, before: Tensor, dm: Tensor, dc: Tensor, d_sums: Tensor
) -> None:
    """As `lstm_steps.step_back`, in the kernel's order of gates."""
    d_gates, d_before = run_cell_back(dm, dc, before, cell, a)
    d_sums.copy_(d_gates)
    dc.copy_(d_before)


def run_cell(first: Tensor, second: Tensor, before: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    """first, second (Tensor): (n, 4 * cell_width). before (Tensor): (n, cell_width). RETURNS m
    and the new cell, each (n, cell_width), and the gates' activations, (n, 4 * cell_width)."""
    return torch.ops.aten._thnn_fused_lstm_cell(first, second, before)


def run_cell_back(
    dm: Tensor, dc: Tensor, before: Tensor, cell: Tensor, a: Tensor
) -> Tuple[Tensor, Tensor]:
    """See `lstm_steps.step_back`. RETURNS the gradients of the gates' sums, (n, 4 *
    cell_width), and of `before`, (n, cell_width)."""
    back = torch.ops.aten._thnn_fused_lstm_cell_backward_impl
    d_gates, d_before, _ = back(dm, dc, before, cell, a, False)
    return d_gates, d_before
