"""The steps of an LSTM layer over packed rows, forward and back, and the gradients of its
weights. See `lstm_gradient`, which makes them known to autograd.

In the shapes, n_rows are the tokens of all sequences, n those of a step, and half is
width // 2. Names are as in `LSTMLayer`; m is a step's output before the projection.
"""

from typing import List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from .lstm_fused import fused_step, fused_step_back


class LayerSettings(NamedTuple):
    """How a layer runs: see `run_layer`."""

    batch_sizes: List[int]
    cell_clip: Optional[float]
    proj_clip: Optional[float]
    dtype: torch.dtype
    is_fused: bool = False


class SavedLayer(NamedTuple):
    """What the gradient is computed from. X, W, P and H are of the products' type.

    X (Tensor): inputs, shape (n_rows, half).
    W (Tensor): shape (2 * half, 4 * cell_width).
    P (Optional[Tensor]): shape (cell_width, half).
    activations (Tensor): of the gates i, f, o, j, or in the order of `lstm_fused`; shape
        (n_rows, 4 * cell_width).
    first_cell (Tensor): before the first step, shape (n_seqs, cell_width).
    C (Tensor): after each step, shape (n_rows, cell_width).
    H (Tensor): the hidden state before the first step, then the output of each row; shape
        (n_seqs + n_rows, half).
    """

    X: Tensor
    W: Tensor
    P: Optional[Tensor]
    activations: Tensor
    first_cell: Tensor
    C: Tensor
    H: Tensor


def run_steps(gates: Tensor, saved: SavedLayer, settings: LayerSettings) -> Tuple[Tensor, Tensor]:
    """gates (Tensor): the inputs' part, (n_rows, 4 * cell_width); overwritten. Fills
    `activations`, `C` and the rows of `H`. RETURNS the state after each sequence's last step:
    (n_seqs, half), (n_seqs, cell_width)."""
    recurrent_weight = saved.W.chunk(2)[1]  # (half, 4 * cell_width)
    cell = saved.first_cell  # (n_seqs, cell_width)
    hidden, Y = saved.H[: len(cell)], saved.H[len(cell) :]  # (n_seqs, half), (n_rows, half)
    last_hidden, last_cell = torch.empty_like(hidden), torch.empty_like(cell)
    start = 0
    for n in settings.batch_sizes:
        rows = slice(start, start + n)
        if n < len(cell):  # some sequences have ended
            last_hidden[n : len(cell)] = hidden[n:]
            last_cell[n : len(cell)] = cell[n:]
            hidden, cell = hidden[:n], cell[:n]  # (n, half), (n, cell_width)
        sums = gates[rows].addmm_(hidden, recurrent_weight)  # (n, 4 * cell_width)
        before, cell, hidden = cell, saved.C[rows], Y[rows]  # hidden: (n, half)
        a = saved.activations[rows]  # (n, 4 * cell_width)
        if settings.is_fused:
            m = fused_step(sums, a, before, cell)  # (n, cell_width)
        else:
            m = step(sums, a, before, cell, settings.cell_clip)
        _project(m.to(hidden.dtype), saved.P, settings.proj_clip, out=hidden)
        start += n
    last_hidden[: len(cell)], last_cell[: len(cell)] = hidden, cell
    return last_hidden, last_cell


def step(sums: Tensor, a: Tensor, before: Tensor, cell: Tensor, clip: Optional[float]) -> Tensor:
    """sums (Tensor): of the gates, (n, 4 * cell_width). a (Tensor): gets the activations, the
    same shape and perhaps the same memory. before (Tensor): (n, cell_width). cell (Tensor):
    gets the new one. RETURNS m = sigmoid(o) * tanh(cell), (n, cell_width)."""
    if a.dtype != sums.dtype:
        a.copy_(sums)
    i, f, o, j = a.chunk(4, dim=1)  # each (n, cell_width)
    j.mul_(2.0)  # tanh(x) = 2 sigmoid(2x) - 1
    a.sigmoid_()
    j.mul_(2.0).sub_(1.0)
    torch.mul(f, before, out=cell).addcmul_(i, j)
    if clip is not None:
        cell.clamp_(-clip, clip)
    return _tanh(cell).mul_(o)


def _project(m: Tensor, P: Optional[Tensor], clip: Optional[float], out: Tensor) -> None:
    """m (Tensor): (n, cell_width). out (Tensor): gets the step's output, (n, half)."""
    if P is None:
        out.copy_(m)
        return
    torch.mm(m, P, out=out)
    if clip is not None:
        out.clamp_(-clip, clip)


def run_back(
    saved: SavedLayer, settings: LayerSettings, dY: Tensor, dH: Tensor, dC: Tensor
) -> Tuple[Tensor, Optional[Tensor]]:
    """dY (Tensor): of the outputs, (n_rows, half). dH, dC (Tensor): of the state after the
    last step, (n_seqs, half), (n_seqs, cell_width); they become those of the first state.
    RETURNS the gradients of the gates' sums, (n_rows, 4 * cell_width), and of the outputs
    before the projection's clip, (n_rows, half), None without projection."""
    C, P, sizes = saved.C, saved.P, settings.batch_sizes
    n_seqs, cell_width = saved.first_cell.shape
    Y = saved.H[n_seqs:]  # (n_rows, half)
    recurrent_back = saved.W.chunk(2)[1].t().contiguous()  # (4 * cell_width, half)
    projection_back = None if P is None else P.t().contiguous()  # (half, cell_width)
    d_gates = saved.X.new_empty(saved.activations.shape)  # (n_rows, 4 * cell_width)
    d_outputs = None if P is None else torch.empty_like(Y)  # (n_rows, half)
    scratch = C.new_empty(3, n_seqs, cell_width)
    d_sums = C.new_empty(n_seqs, 4 * cell_width)
    end = len(C)
    for t in reversed(range(len(sizes))):
        n, start = sizes[t], end - sizes[t]
        rows = slice(start, end)
        before = C[start - sizes[t - 1] :][:n] if t else saved.first_cell
        dm = dH[:n].add_(dY[rows])  # (n, half)
        if projection_back is not None and d_outputs is not None:
            if settings.proj_clip is not None:
                dm.mul_(Y[rows].abs() < settings.proj_clip)
            dm = torch.mm(d_outputs[rows].copy_(dm), projection_back).to(C.dtype)  # (n, cell_width)
        a, cell, dc = saved.activations[rows], C[rows], dC[:n]
        if settings.is_fused:
            fused_step_back(a, cell, before, dm, dc, d_sums[:n])
        else:
            step_back(a, cell, before, dm, dc, d_sums[:n], scratch[:, :n], settings.cell_clip)
        dg = d_gates[rows].copy_(d_sums[:n])  # (n, 4 * cell_width)
        dH[:n] = torch.mm(dg, recurrent_back)  # (n, half)
        end = start
    return d_gates, d_outputs


def step_back(
    a: Tensor,
    cell: Tensor,
    before: Tensor,
    dm: Tensor,
    dc: Tensor,
    d_sums: Tensor,
    scratch: Tensor,
    clip: Optional[float],
) -> None:
    """a (Tensor): activations, (n, 4 * cell_width). cell, before (Tensor): after and before
    the step, (n, cell_width). dm (Tensor): the gradient of m, (n, cell_width). dc (Tensor):
    that of the cell, (n, cell_width); becomes that of `before`. d_sums (Tensor): gets that of
    the gates' sums, (n, 4 * cell_width). scratch (Tensor): (3, n, cell_width)."""
    i, f, o, j = a.chunk(4, dim=1)  # each (n, cell_width)
    d_i, d_f, d_o, d_j = d_sums.chunk(4, dim=1)  # each (n, cell_width)
    t, u, v = scratch  # each (n, cell_width)
    t.copy_(_tanh(cell))
    # dc += dm * o * (1 - t * t)
    torch.mul(dm, o, out=u)
    dc.add_(u).addcmul_(u.mul_(t), t, value=-1)
    if clip is not None:
        dc.mul_(cell.abs() < clip)
    _sigmoid_back(o, torch.mul(dm, t, out=v), d_o)
    _sigmoid_back(i, torch.mul(dc, j, out=v), d_i)
    _sigmoid_back(f, torch.mul(dc, before, out=v), d_f)
    # d_j = dc * i * (1 - j * j)
    torch.mul(dc, i, out=d_j)
    d_j.addcmul_(torch.mul(d_j, j, out=v), j, value=-1)
    dc.mul_(f)


def weight_gradients(
    saved: SavedLayer, settings: LayerSettings, d_gates: Tensor, d_outputs: Optional[Tensor]
) -> Tuple[Tensor, Tensor, Optional[Tensor]]:
    """d_gates, d_outputs (Tensor): from `run_back`. RETURNS the gradients of weight, bias and
    projection, in their shapes."""
    C, n_seqs = saved.C, len(saved.first_cell)
    before = _rows_before(settings.batch_sizes, n_seqs).to(C.device)  # (n_rows,)
    H_before = saved.H[before]  # (n_rows, half)
    d_weight = torch.cat([saved.X.t() @ d_gates, H_before.t() @ d_gates]).to(C.dtype)
    d_bias = (d_gates.new_ones(1, len(d_gates)) @ d_gates)[0].to(C.dtype)  # (4 * cell_width,)
    if d_outputs is None:
        return d_weight, d_bias, None
    o = saved.activations.chunk(4, dim=1)[3 if settings.is_fused else 2]  # (n_rows, cell_width)
    M = _tanh(C).mul_(o).to(settings.dtype)  # (n_rows, cell_width)
    return d_weight, d_bias, (M.t() @ d_outputs).to(C.dtype)


def _rows_before(batch_sizes: List[int], n_seqs: int) -> Tensor:
    """The row of H that each row's step started from, int64, (n_rows,)."""
    sizes = torch.tensor(batch_sizes)  # (n_steps,)
    n_before = torch.tensor([n_seqs, *batch_sizes[:-1]])  # (n_steps,)
    starts = torch.cumsum(n_before, 0) - n_before  # (n_steps,)
    steps = torch.repeat_interleave(sizes)  # (n_rows,)
    within = torch.arange(len(steps)) - (torch.cumsum(sizes, 0) - sizes)[steps]  # (n_rows,)
    return starts[steps] + within


def _tanh(X: Tensor) -> Tensor:
    """tanh(x) = 2 sigmoid(2x) - 1: a new tensor, in a fraction of the time."""
    return (X * 2.0).sigmoid_().mul_(2.0).sub_(1.0)


def _sigmoid_back(y: Tensor, dy: Tensor, out: Tensor) -> None:
    """out = dy * y * (1 - y); overwrites `dy`."""
    torch.mul(dy, y, out=out)
    out.addcmul_(dy.copy_(out), y, value=-1)
