"""A stack of LSTM layers for one reading direction, of which the biLM has two, with a gradient
written by hand."""

import warnings
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.backends import cudnn

from .config import BiLMConfig


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


# Of one layer and direction: hidden (n_seqs, width // 2), cell (n_seqs, cell_width).
LayerState = Tuple[Tensor, Tensor]


class BiLMState(NamedTuple):
    """The LSTM state after the last word of each sequence.

    hidden (Tensor): shape (depth, 2, n_seqs, width // 2), before the skip connection.
    cell (Tensor): shape (depth, 2, n_seqs, cell_width).

    The second axis is the direction, forward first.
    """

    hidden: Tensor
    cell: Tensor


class LSTMLayer(nn.Module):
    """Run one LSTM layer with projection and clips in one direction:

        c' = sigmoid(f) * c + sigmoid(i) * tanh(j), clipped to +-cell_clip
        h' = (sigmoid(o) * tanh(c')) Wp, clipped to +-proj_clip

    The clips are applied where bilm-tf applies them; the projection clip only where
    there is a projection (TF `rnn_cell_impl`). The forget gate's +1 is in the bias.

    Matrices are laid out (in, out): at a few dozen rows `X @ W` is several times
    faster that way. The gates stand as i, f, o, j: the three sigmoids are one block.

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
        """X (Tensor): packed inputs, shape (sum(batch_sizes), width // 2).
        batch_sizes (List[int]): rows of each step, never growing.
        state (LayerState): before the first step, longest sequence first.
        dtype (Optional[torch.dtype]): of the products; None for that of X, or what
            `torch.autocast` says.
        RETURNS (Tuple[Tensor, LayerState]): packed outputs in the shape of X, and
            the state after each sequence's last step.
        """
        return run_layer(
            X,
            self.weight,
            self.bias,
            self.projection,
            state,
            batch_sizes,
            self.cell_clip,
            self.proj_clip,
            dtype,
        )


class LSTMStack(nn.Module):
    """Run the layers of one direction. The directions never meet inside the stack.

    A layer above the first adds its input to its output when skip connections are on;
    the sum is what the next layer reads, not what the state carries.
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
        """X (Tensor): packed word vectors, shape (n_rows, width // 2).
        batch_sizes (List[int]): rows of each step, never growing.
        states (List[LayerState]): one for each layer.
        dropout (Optional[nn.Module]): applied to what a layer hands to the next one.
        RETURNS (Tuple[List[Tensor], List[LayerState]]): for each layer its packed
            outputs in the shape of X, and its last state.
        """
        outputs: List[Tensor] = []
        last_states: List[LayerState] = []
        for depth, (layer, state) in enumerate(zip(self.layers, states)):
            if dropout is not None and depth > 0:
                X = dropout(X)
            Y, last = layer(X, batch_sizes, state)
            X = Y + X if self.skip_connections and depth > 0 else Y
            outputs.append(X)
            last_states.append(last)
        return outputs, last_states
