"""`run_layer`: an LSTM layer over packed rows with a gradient written by hand.

Autograd would record a dozen nodes for each step and add up the weights' gradients
step by step. Here the steps only pass on what the recurrence needs; the gradients of
the weights are three products over all rows at the end.
"""

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor


class _Layer(torch.autograd.Function):
    """Names as in `LSTMLayer`; `Y` are the outputs of all rows, `M` the same before
    the projection, `H_before` and `C_before` what each row's step started from."""

    @staticmethod
    def forward(
        ctx: Any,
        X: Tensor,
        weight: Tensor,
        bias: Tensor,
        projection: Optional[Tensor],
        hidden: Tensor,
        cell: Tensor,
        batch_sizes: List[int],
        cell_clip: Optional[float],
        proj_clip: Optional[float],
        dtype: torch.dtype,
    ) -> Tuple[Tensor, Tensor, Tensor]:
        cell_width = cell.size(1)
        first_cell, out_dtype = cell, hidden.dtype
        X, W, hidden = X.to(dtype), weight.to(dtype), hidden.to(dtype)
        P = None if projection is None else projection.to(dtype)
        input_weight, recurrent_weight = W.chunk(2)
        # All steps' input products at once; only the recurrence has to wait.
        gates = torch.addmm(bias.to(dtype), X, input_weight)
        n_rows = gates.size(0)
        activations = gates if dtype == cell.dtype else cell.new_empty(gates.shape)
        C = cell.new_empty(n_rows, cell_width)
        # What the first step starts from, then the outputs of all rows.
        H = hidden.new_empty(hidden.size(0) + n_rows, hidden.size(1))
        H[: hidden.size(0)] = hidden
        Y = H[hidden.size(0) :]
        last_hidden, last_cell = torch.empty_like(hidden), torch.empty_like(cell)
        start = 0
        for n in batch_sizes:
            rows = slice(start, start + n)
            if n < hidden.size(0):
                last_hidden[n : hidden.size(0)] = hidden[n:]
                last_cell[n : cell.size(0)] = cell[n:]
                hidden, cell = hidden[:n], cell[:n]
            step_gates, a = gates[rows].addmm_(hidden, recurrent_weight), activations[rows]
            if a.dtype != dtype:
                a.copy_(step_gates)
            i, f, o, j = a.chunk(4, dim=1)
            j.mul_(2.0)
            a.sigmoid_()
            j.mul_(2.0).sub_(1.0)
            cell = torch.mul(f, cell, out=C[rows]).addcmul_(i, j)
            if cell_clip is not None:
                cell.clamp_(-cell_clip, cell_clip)
            output, hidden = _tanh(cell).mul_(o).to(dtype), Y[rows]
            if P is None:
                hidden.copy_(output)
            else:
                torch.mm(output, P, out=hidden)
                if proj_clip is not None:
                    hidden.clamp_(-proj_clip, proj_clip)
            start += n
        last_hidden[: hidden.size(0)], last_cell[: cell.size(0)] = hidden, cell
        ctx.save_for_backward(X, W, P, activations, first_cell, C, H)
        ctx.settings = batch_sizes, cell_clip, proj_clip, dtype
        return Y.to(out_dtype, copy=True), last_hidden.to(out_dtype), last_cell

    @staticmethod
    def backward(
        ctx: Any, dY: Tensor, d_last_hidden: Tensor, d_last_cell: Tensor
    ) -> Tuple[Optional[Tensor], ...]:
        X, W, P, activations, first_cell, C, H = ctx.saved_tensors
        batch_sizes, cell_clip, proj_clip, dtype = ctx.settings
        n_seqs, cell_width = first_cell.shape
        input_weight, recurrent_weight = W.chunk(2)
        recurrent_back = recurrent_weight.t().contiguous()
        projection_back = first_cell if P is None else P.t().contiguous()
        Y = H[n_seqs:]
        d_gates = X.new_empty(activations.shape)
        d_projected = Y.new_empty(0 if P is None else len(Y), Y.size(1))
        # Gradients of what the step after this one started from.
        dH, dC = d_last_hidden.clone(), d_last_cell.clone()
        scratch = C.new_empty(4, n_seqs, cell_width)
        step_gates = C.new_empty(n_seqs, 4 * cell_width)
        end = C.size(0)
        for step in reversed(range(len(batch_sizes))):
            n = batch_sizes[step]
            rows, start = slice(end - n, end), end - n
            before = C[start - batch_sizes[step - 1] :][:n] if step else first_cell
            i, f, o, j = activations[rows].chunk(4, dim=1)
            d_i, d_f, d_o, d_j = step_gates[:n].chunk(4, dim=1)
            t, u, v, dm = scratch[:, :n]
            dh, dc = dH[:n].add_(dY[rows]), dC[:n]
            if P is None:
                dm = dh
            else:
                if proj_clip is not None:
                    dh.mul_(Y[rows].abs() < proj_clip)
                dm.copy_(torch.mm(d_projected[rows].copy_(dh), projection_back))
            t.copy_(_tanh(C[rows]))
            # dc += dm * o * (1 - t * t)
            torch.mul(dm, o, out=u)
            dc.add_(u).addcmul_(u.mul_(t), t, value=-1)
            if cell_clip is not None:
                dc.mul_(C[rows].abs() < cell_clip)
            _sigmoid_back(o, torch.mul(dm, t, out=v), d_o)
            _sigmoid_back(i, torch.mul(dc, j, out=v), d_i)
            _sigmoid_back(f, torch.mul(dc, before, out=v), d_f)
            torch.mul(dc, i, out=d_j)
            d_j.addcmul_(torch.mul(d_j, j, out=v), j, value=-1)
            dg = d_gates[rows].copy_(step_gates[:n])
            dH[:n] = torch.mm(dg, recurrent_back)
            dc.mul_(f)
            end = start
        n_before = torch.tensor([n_seqs, *batch_sizes[:-1]])
        sizes = torch.tensor(batch_sizes)
        # The row that each row goes on from, counted in H.
        starts = torch.cumsum(n_before, 0) - n_before
        steps = torch.repeat_interleave(sizes)
        within = torch.arange(len(steps)) - (torch.cumsum(sizes, 0) - sizes)[steps]
        H_before = H[(starts[steps] + within).to(H.device)]
        d_weight = torch.cat([X.t() @ d_gates, H_before.t() @ d_gates]).to(C.dtype)
        d_bias = (d_gates.new_ones(1, d_gates.size(0)) @ d_gates)[0].to(C.dtype)
        d_projection = None
        if P is not None:
            M = _tanh(C).mul_(activations[:, 2 * cell_width : 3 * cell_width]).to(dtype)
            d_projection = (M.t() @ d_projected).to(C.dtype)
        dX = (d_gates @ input_weight.t()).to(C.dtype)
        return dX, d_weight, d_bias, d_projection, dH, dC, None, None, None, None


def _tanh(X: Tensor) -> Tensor:
    """tanh(x) = 2 sigmoid(2x) - 1: a new tensor, in a fraction of the time."""
    return (X * 2.0).sigmoid_().mul_(2.0).sub_(1.0)


def _sigmoid_back(y: Tensor, dy: Tensor, out: Tensor) -> None:
    """out = dy * y * (1 - y); overwrites `dy`."""
    torch.mul(dy, y, out=out)
    out.addcmul_(dy.copy_(out), y, value=-1)


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
        Y, hidden, cell = _Layer.apply(
            X,
            weight,
            bias,
            projection,
            *state,
            batch_sizes,
            cell_clip,
            proj_clip,
            dtype,
        )
    return Y, (hidden, cell)
