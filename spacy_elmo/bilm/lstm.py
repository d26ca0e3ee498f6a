"""A stack of LSTM layers for one reading direction, of which the biLM has two.

The gradient of a layer is written by hand. Autograd would record a dozen nodes for each step and
add up the weights' gradients step by step. Here the steps pass on only what the recurrence needs;
the gradients of the weights are three products over all rows at the end.

In the shapes, n_rows are the tokens of all sequences, n those of a step, and half is width // 2.
"""

import warnings
from contextlib import contextmanager, nullcontext
from threading import Lock
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.backends import cudnn

from .config import BiLMConfig

# Of one layer and direction: hidden (n_seqs, width // 2), cell (n_seqs, cell_width).
LayerState = Tuple[Tensor, Tensor]

_CUDNN_FLAG = Lock()


class BiLMState(NamedTuple):
    """The LSTM state after the last word of each sequence. The second axis is the direction,
    forward first."""

    hidden: Tensor  # shape (depth, 2, n_seqs, width // 2), before the skip connection
    cell: Tensor  # shape (depth, 2, n_seqs, cell_width)


class LSTMLayer(nn.Module):
    """Run one LSTM layer with projection and clips in one direction:

        c' = sigmoid(f) * c + sigmoid(i) * tanh(j), clipped to +-cell_clip
        h' = (sigmoid(o) * tanh(c')) Wp, clipped to +-proj_clip

    The clips are applied where bilm-tf applies them; the projection clip only where
    there is a projection (TF `rnn_cell_impl`). The forget gate's +1 is in the bias.

    Matrices are laid out (in, out): at a few dozen rows `X @ W` is several times
    faster that way. The gates are ordered i, f, o, j: the three sigmoids are one block.

    Source: Sak et al. 2014; Peters et al. 2018, section 3.4.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        width, cell_width = config.direction_width, config.cell_width
        self.cell_width = cell_width
        self.cell_clip = config.cell_clip
        self.proj_clip = config.proj_clip
        # Upper half for the input, lower half for the recurrence, as in the HDF5 files.
        self.weight = nn.Parameter(torch.empty(2 * width, 4 * cell_width))
        self.bias = nn.Parameter(torch.zeros(4 * cell_width))
        self.projection: Optional[nn.Parameter] = None
        if config.projection:
            self.projection = nn.Parameter(torch.empty(cell_width, width))
        self._reset_parameters()

    @torch.no_grad()
    def _reset_parameters(self) -> None:
        for weight in self.parameters():
            if weight.dim() == 2:
                nn.init.xavier_uniform_(weight)
        # A cell that starts by remembering trains faster (Jozefowicz et al. 2015).
        self.bias[self.cell_width : 2 * self.cell_width] = 1.0

    def forward(
        self,
        X: Tensor,
        batch_sizes: List[int],
        state: LayerState,
        dtype: Optional[torch.dtype] = None,
    ) -> Tuple[Tensor, LayerState]:
        """Matrix products may have another type; cells, activations and results stay float32.

        X (Tensor): packed inputs, shape (sum(batch_sizes), width // 2).
        batch_sizes (List[int]): rows of each step, never growing.
        state (LayerState): before the first step, longest sequence first.
        dtype (Optional[torch.dtype]): of the products; None for `torch.autocast`'s, else X's.
        RETURNS (Tuple[Tensor, LayerState]): packed outputs in the shape of X, and
            the state after each sequence's last step.
        """
        device = X.device.type
        if dtype is None:
            is_casting = torch.is_autocast_enabled(device)
            dtype = torch.get_autocast_dtype(device) if is_casting else X.dtype
        with torch.autocast(device, enabled=False):
            if X.is_cuda and has_torch_layer(self):
                weights = make_torch_weights(self)
                return run_torch_lstm(X, weights, batch_sizes, state, dtype)
            settings = _Settings(batch_sizes, self.cell_clip, self.proj_clip, dtype)
            Y, hidden, cell = _Layer.apply(
                X, self.weight, self.bias, self.projection, *state, settings
            )
        return Y, (hidden, cell)


class LSTMStack(nn.Module):
    """Run the layers of one direction. The directions never meet inside the stack.

    A layer above the first adds its input to its output when skip connections are on. The
    next layer reads the sum; the state carries the output alone.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.skip_connections = config.skip_connections
        self.layers = nn.ModuleList(LSTMLayer(config) for _ in range(config.depth))

    def forward(
        self,
        X: Tensor,
        batch_sizes: List[int],
        states: List[LayerState],
        dropout: Optional[nn.Module] = None,
    ) -> Tuple[List[Tensor], List[LayerState]]:
        """As `LSTMLayer.forward`, with a state, packed outputs and a final state for each layer.
        `dropout` is applied to the inputs of all layers but the first."""
        outputs: List[Tensor] = []
        finals: List[LayerState] = []
        for depth, (layer, state) in enumerate(zip(self.layers, states)):
            if dropout is not None and depth > 0:
                X = dropout(X)
            Y, final = layer(X, batch_sizes, state)
            X = Y + X if self.skip_connections and depth > 0 else Y
            outputs.append(X)
            finals.append(final)
        return outputs, finals


# ---- torch's own LSTM, whose loop over time needs no interpreter. Its gates are i, f, j, o.


def has_torch_layer(layer: LSTMLayer) -> bool:
    """Whether torch's LSTM can compute the same: it has no clips, and its projection must be
    narrower than its cells."""
    projection = layer.projection
    is_narrower = projection is None or projection.size(1) < projection.size(0)
    return is_narrower and layer.cell_clip is None and layer.proj_clip is None


def make_torch_weights(layer: LSTMLayer) -> List[Tensor]:
    """Copies of the weights in the order of torch's LSTM; gradients flow back through them."""
    i, f, o, j = layer.weight.chunk(4, dim=1)  # each (width, cell_width)
    weight = torch.cat([i, f, j, o], dim=1).t()  # (4 * cell_width, width)
    i, f, o, j = layer.bias.chunk(4)  # each (cell_width,)
    bias = torch.cat([i, f, j, o])
    weights = [part.contiguous() for part in weight.chunk(2, dim=1)]
    weights += [bias, torch.zeros_like(bias)]
    return weights if layer.projection is None else [*weights, layer.projection.t().contiguous()]


def run_torch_lstm(
    X: Tensor,
    weights: List[Tensor],
    batch_sizes: List[int],
    state: LayerState,
    dtype: torch.dtype = torch.float32,
) -> Tuple[Tensor, LayerState]:
    """As `LSTMLayer.forward`, in the type of the weights. dtype (torch.dtype): least exact type of
    the products. cuDNN is used on a GPU if it is short: it rounds float32 to ten bits (TF32), as
    many as float16 has, and more than bfloat16."""
    sizes = torch.tensor(batch_sizes, device="cpu")  # (n_steps,)
    # (1, n_seqs, half or cell_width)
    before = [part[None].contiguous().to(weights[0].dtype) for part in state]
    X = X.to(weights[0].dtype)  # (n_rows, half)
    is_training = torch.is_grad_enabled()
    is_short = dtype in (torch.bfloat16, torch.float16)
    with _use_cudnn(is_short) if X.is_cuda else nullcontext():
        # One layer with biases, no dropout, one direction.
        Y, hidden, cell = torch.lstm(X, sizes, before, weights, True, 1, 0.0, is_training, False)
    return Y, (hidden[0], cell[0])


@contextmanager
def _use_cudnn(is_used: bool) -> Iterator[None]:
    # A flag of the process, which only one thread may change at a time.
    with _CUDNN_FLAG, warnings.catch_warnings():
        # It copies them into one piece of memory each time.
        warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous")
        before = cudnn.enabled
        cudnn.enabled = before and is_used
        try:
            yield
        finally:
            cudnn.enabled = before


# ---- the gradient


class _Settings(NamedTuple):
    """How a layer runs: see `LSTMLayer.forward`."""

    batch_sizes: List[int]
    cell_clip: Optional[float]
    proj_clip: Optional[float]
    dtype: torch.dtype


class _Saved(NamedTuple):
    """Saved for the gradient. X, W, P and H have the products' type."""

    X: Tensor  # inputs, shape (n_rows, half)
    W: Tensor  # weights, shape (2 * half, 4 * cell_width)
    P: Optional[Tensor]  # projection, shape (cell_width, half)
    activations: Tensor  # of the gates, shape (n_rows, 4 * cell_width)
    first_cell: Tensor  # before the first step, shape (n_seqs, cell_width)
    C: Tensor  # cells after each step, shape (n_rows, cell_width)
    # The hidden state before the first step, then the output of each row: (n_seqs + n_rows, half)
    H: Tensor


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
        settings: _Settings,
    ) -> Tuple[Tensor, Tensor, Tensor]:
        dtype = settings.dtype
        X, W = X.to(dtype), weight.to(dtype)  # (n_rows, half), (2 * half, 4 * cell_width)
        P = None if projection is None else projection.to(dtype)  # (cell_width, half)
        # The input products of all steps at once; only the recurrence has to wait.
        gates = torch.addmm(bias.to(dtype), X, W.chunk(2)[0])  # (n_rows, 4 * cell_width)
        n_seqs, half = hidden.shape
        H = X.new_empty(n_seqs + len(X), half)  # (n_seqs + n_rows, half)
        H[:n_seqs] = hidden
        activations = gates if dtype == cell.dtype else cell.new_empty(gates.shape)
        saved = _Saved(X, W, P, activations, cell, cell.new_empty(len(X), cell.size(1)), H)
        final_hidden, final_cell = _run_steps(gates, saved, settings)
        ctx.save_for_backward(*saved)
        ctx.settings = settings
        # (n_rows, half), (n_seqs, half), (n_seqs, cell_width)
        return H[n_seqs:].to(hidden.dtype, copy=True), final_hidden.to(hidden.dtype), final_cell

    @staticmethod
    def backward(
        ctx: Any, dY: Tensor, d_final_hidden: Tensor, d_final_cell: Tensor
    ) -> Tuple[Optional[Tensor], ...]:
        saved, settings = _Saved(*ctx.saved_tensors), ctx.settings
        # Gradients of the state after the last step; they become those of the first state.
        dH, dC = d_final_hidden.clone(), d_final_cell.clone()
        d_gates, d_outputs = _run_back(saved, settings, dY, dH, dC)
        d_weight, d_bias, d_projection = _weight_gradients(saved, settings, d_gates, d_outputs)
        dX = (d_gates @ saved.W.chunk(2)[0].t()).to(dC.dtype)  # (n_rows, half)
        return dX, d_weight, d_bias, d_projection, dH, dC, None


def _run_steps(gates: Tensor, saved: _Saved, settings: _Settings) -> Tuple[Tensor, Tensor]:
    """Fill `activations`, `C` and `H` from the inputs' part of the gates, (n_rows, 4 * cell_width),
    which is overwritten. RETURNS the final state: (n_seqs, half), (n_seqs, cell_width)."""
    recurrent_weight = saved.W.chunk(2)[1]  # (half, 4 * cell_width)
    cell = saved.first_cell  # (n_seqs, cell_width)
    hidden, Y = saved.H[: len(cell)], saved.H[len(cell) :]  # (n_seqs, half), (n_rows, half)
    final_hidden, final_cell = torch.empty_like(hidden), torch.empty_like(cell)
    start = 0
    for n in settings.batch_sizes:
        rows = slice(start, start + n)
        if n < len(cell):  # some sequences have ended
            final_hidden[n : len(cell)] = hidden[n:]
            final_cell[n : len(cell)] = cell[n:]
            hidden, cell = hidden[:n], cell[:n]  # (n, half), (n, cell_width)
        sums = gates[rows].addmm_(hidden, recurrent_weight)  # (n, 4 * cell_width)
        before, cell, hidden = cell, saved.C[rows], Y[rows]  # hidden: (n, half)
        a = saved.activations[rows]  # (n, 4 * cell_width)
        # (n, cell_width)
        m = _step(sums, a, before, cell, settings.cell_clip).to(hidden.dtype)
        if saved.P is None:
            hidden.copy_(m)
        else:
            torch.mm(m, saved.P, out=hidden)
            if settings.proj_clip is not None:
                hidden.clamp_(-settings.proj_clip, settings.proj_clip)
        start += n
    final_hidden[: len(cell)], final_cell[: len(cell)] = hidden, cell
    return final_hidden, final_cell


def _step(sums: Tensor, a: Tensor, before: Tensor, cell: Tensor, clip: Optional[float]) -> Tensor:
    """Compute `a`, the activations, from the sums of the gates, (n, 4 * cell_width), perhaps in the
    same memory; and the new `cell`. RETURNS m = sigmoid(o) * tanh(cell), (n, cell_width)."""
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


def _run_back(
    saved: _Saved, settings: _Settings, dY: Tensor, dH: Tensor, dC: Tensor
) -> Tuple[Tensor, Optional[Tensor]]:
    """dY is of the outputs, (n_rows, half); dH and dC, (n_seqs, half) and (n_seqs, cell_width), are
    of the final state and become those of the first one. RETURNS the gradients of the gates' sums,
    (n_rows, 4 * cell_width), and of the projection's outputs before their clip, (n_rows, half)."""
    C, P, sizes = saved.C, saved.P, settings.batch_sizes
    n_seqs, cell_width = saved.first_cell.shape
    Y = saved.H[n_seqs:]  # (n_rows, half)
    recurrent_t = saved.W.chunk(2)[1].t().contiguous()  # (4 * cell_width, half)
    projection_t = None if P is None else P.t().contiguous()  # (half, cell_width)
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
        if projection_t is not None and d_outputs is not None:
            if settings.proj_clip is not None:
                dm.mul_(Y[rows].abs() < settings.proj_clip)
            dm = torch.mm(d_outputs[rows].copy_(dm), projection_t).to(C.dtype)  # (n, cell_width)
        a, cell, dc = saved.activations[rows], C[rows], dC[:n]
        _step_back(a, cell, before, dm, dc, d_sums[:n], scratch[:, :n], settings.cell_clip)
        dg = d_gates[rows].copy_(d_sums[:n])  # (n, 4 * cell_width)
        dH[:n] = torch.mm(dg, recurrent_t)  # (n, half)
        end = start
    return d_gates, d_outputs


def _step_back(
    a: Tensor,
    cell: Tensor,
    before: Tensor,
    dm: Tensor,
    dc: Tensor,
    d_sums: Tensor,
    scratch: Tensor,
    clip: Optional[float],
) -> None:
    """The gradient of `_step`: from dm, of m, and dc, of the cell, which becomes that of `before`,
    all (n, cell_width), to d_sums, (n, 4 * cell_width). scratch (Tensor): (3, n, cell_width)."""
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


def _weight_gradients(
    saved: _Saved, settings: _Settings, d_gates: Tensor, d_outputs: Optional[Tensor]
) -> Tuple[Tensor, Tensor, Optional[Tensor]]:
    """Gradients of weight, bias and projection."""
    C, n_seqs = saved.C, len(saved.first_cell)
    before = _rows_before(settings.batch_sizes, n_seqs).to(C.device)  # (n_rows,)
    H_before = saved.H[before]  # (n_rows, half)
    d_weight = torch.cat([saved.X.t() @ d_gates, H_before.t() @ d_gates]).to(C.dtype)
    d_bias = (d_gates.new_ones(1, len(d_gates)) @ d_gates)[0].to(C.dtype)  # (4 * cell_width,)
    if d_outputs is None:
        return d_weight, d_bias, None
    o = saved.activations.chunk(4, dim=1)[2]  # (n_rows, cell_width)
    M = _tanh(C).mul_(o).to(settings.dtype)  # (n_rows, cell_width)
    return d_weight, d_bias, (M.t() @ d_outputs).to(C.dtype)


def _rows_before(batch_sizes: List[int], n_seqs: int) -> Tensor:
    """The row of H that each row's step started from, int64, (n_rows,)."""
    sizes = torch.tensor(batch_sizes, device="cpu")  # (n_steps,)
    n_before = torch.tensor([n_seqs, *batch_sizes[:-1]], device="cpu")  # (n_steps,)
    starts = torch.cumsum(n_before, 0) - n_before  # (n_steps,)
    steps = torch.repeat_interleave(sizes)  # (n_rows,)
    rows = torch.arange(len(steps), device="cpu")
    within = rows - (torch.cumsum(sizes, 0) - sizes)[steps]  # (n_rows,)
    return starts[steps] + within


def _tanh(X: Tensor) -> Tensor:
    """tanh(x) = 2 sigmoid(2x) - 1: a new tensor, in a fraction of the time."""
    return (X * 2.0).sigmoid_().mul_(2.0).sub_(1.0)


def _sigmoid_back(y: Tensor, dy: Tensor, out: Tensor) -> None:
    """out = dy * y * (1 - y); overwrites `dy`."""
    torch.mul(dy, y, out=out)
    out.addcmul_(dy.copy_(out), y, value=-1)
