"""`run_layer`: an LSTM layer over packed rows with a gradient written by hand.

Autograd would record a dozen nodes for each step and add up the weights' gradients
step by step. Here the steps only pass on what the recurrence needs; the gradients of
the weights are three products over all rows at the end.

In the shapes, n_rows are the tokens of all sequences, and half is width // 2.
"""

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor

from .lstm_cudnn import can_use_cudnn, run_torch_layer
from .lstm_fused import can_fuse
from .lstm_steps import LayerSettings, SavedLayer, run_back, run_steps, weight_gradients
from .torch_weights import swap_gates


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        X: Tensor,
        weight: Tensor,
        bias: Tensor,
        projection: Optional[Tensor],
        hidden: Tensor,
        cell: Tensor,
        settings: LayerSettings,
    ) -> Tuple[Tensor, Tensor, Tensor]:
        dtype = settings.dtype
        if settings.is_fused:
            weight, bias = swap_gates(weight), swap_gates(bias)
        X, W = X.to(dtype), weight.to(dtype)  # (n_rows, half), (2 * half, 4 * cell_width)
        P = None if projection is None else projection.to(dtype)  # (cell_width, half)
        # All steps' input products at once; only the recurrence has to wait.
        gates = torch.addmm(bias.to(dtype), X, W.chunk(2)[0])  # (n_rows, 4 * cell_width)
        n_seqs, half = hidden.shape
        H = X.new_empty(n_seqs + len(X), half)  # (n_seqs + n_rows, half)
        H[:n_seqs] = hidden
        activations = gates if dtype == cell.dtype else cell.new_empty(gates.shape)
        saved = SavedLayer(X, W, P, activations, cell, cell.new_empty(len(X), cell.size(1)), H)
        last_hidden, last_cell = run_steps(gates, saved, settings)
        ctx.save_for_backward(*saved)
        ctx.settings = settings
        # (n_rows, half), (n_seqs, half), (n_seqs, cell_width)
        return H[n_seqs:].to(hidden.dtype, copy=True), last_hidden.to(hidden.dtype), last_cell

    @staticmethod
    def backward(
        ctx: Any, dY: Tensor, d_last_hidden: Tensor, d_last_cell: Tensor
    ) -> Tuple[Optional[Tensor], ...]:
        saved, settings = SavedLayer(*ctx.saved_tensors), ctx.settings
        # Gradients of what a step starts from: here the one after the last.
        dH, dC = d_last_hidden.clone(), d_last_cell.clone()  # (n_seqs, half), (n_seqs, cell_width)
        d_gates, d_outputs = run_back(saved, settings, dY, dH, dC)
        d_weight, d_bias, d_projection = weight_gradients(saved, settings, d_gates, d_outputs)
        if settings.is_fused:
            d_weight, d_bias = swap_gates(d_weight), swap_gates(d_bias)
        dX = (d_gates @ saved.W.chunk(2)[0].t()).to(dC.dtype)  # (n_rows, half)
        return dX, d_weight, d_bias, d_projection, dH, dC, None


def run_layer(
    X: Tensor,
    weight: Tensor,
    bias: Tensor,
    projection: Optional[Tensor],
    state: Tuple[Tensor, Tensor],
    batch_sizes: List[int],
    cell_clip: Optional[float],
    proj_clip: Optional[float],
    dtype: Optional[torch.dtype] = None,
) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
    """Run an LSTM layer so that gradients can flow back. Matrix products may be of another
    type, by argument or `torch.autocast`; cells, activations and results stay float32.

    X (Tensor): packed inputs, shape (sum(batch_sizes), width // 2).
    weight (Tensor): shape (width, 4 * cell_width), input above recurrence.
    bias (Tensor): shape (4 * cell_width,).
    projection (Optional[Tensor]): shape (cell_width, width // 2).
    state (Tuple[Tensor, Tensor]): hidden and cell before the first step.
    batch_sizes (List[int]): rows of each step, never growing.
    cell_clip (Optional[float]): bound of the cell.
    proj_clip (Optional[float]): bound of the projected output.
    dtype (Optional[torch.dtype]): of the products; None for autocast's, else that of X.
    RETURNS (Tuple[Tensor, Tuple[Tensor, Tensor]]): packed outputs in the shape of X,
        and the state after each sequence's last step.
    """
    device = X.device.type
    if dtype is None:
        is_casting = torch.is_autocast_enabled(device)
        dtype = torch.get_autocast_dtype(device) if is_casting else X.dtype
    with torch.autocast(device, enabled=False):
        if can_use_cudnn(state[1], projection, (cell_clip, proj_clip), dtype):
            return run_torch_layer(X, weight, bias, projection, state, batch_sizes)
        is_fused = can_fuse(X, cell_clip)
        settings = LayerSettings(batch_sizes, cell_clip, proj_clip, dtype, is_fused)
        Y, hidden, cell = _Layer.apply(X, weight, bias, projection, *state, settings)
    return Y, (hidden, cell)
