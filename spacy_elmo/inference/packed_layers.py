"""Layers laid out for inference on this processor: products, the character CNN, an LSTM layer.

oneDNN keeps a weight in the blocks that its kernels read. torch exposes that to its compiler's
output, as operators without a public name. They are used where they exist and agree with a plain
product, which does the work elsewhere.
"""

import logging
from typing import Callable, Iterator, List, Optional, Tuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..bilm.batch import N_CHARACTERS
from ..bilm.char_cnn import CharCNN, Highway
from ..bilm.lstm import LayerState, LSTMLayer, make_torch_weights, run_torch_lstm
from ..errors import Errors

logger = logging.getLogger("spacy_elmo")

Linear = Callable[[Tensor], Tensor]

PRECISIONS = ("fp32", "bf16", "fp16", "int8")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
# A product with fewer multiplications is over before oneDNN has looked up its kernel.
_LEAST_PACKED = 2**20
# Rows for which oneDNN chooses a weight's blocks. Any number can be multiplied.
_TYPICAL_ROWS = 64
# `round_rows` adds less than this.
MOST_ROUNDING = 64
# Rows below packed ones that may be read, since numbers of rows are rounded up: once for a step,
# and once for a tile.
N_PADDING = 2 * MOST_ROUNDING
# Numbers of gates that are computed ahead of the recurrence: they stay in the processor's cache.
_TILE_NUMBERS = 2**18
_LEAST_TILE_ROWS = 64
_INT8_MAX = 127.0
_INT8_ZERO = 128
# Instead of a scale of 0.
_TINY = 1e-12


def round_rows(n_rows: int, least: int = 1) -> int:
    """Round up to one of a few numbers of rows: oneDNN compiles a kernel for each, in
    milliseconds."""
    n_rows = max(n_rows, least)
    if n_rows <= 1:
        return n_rows
    multiple = 2 if n_rows <= 8 else 8 if n_rows <= 64 else 16 if n_rows <= 256 else MOST_ROUNDING
    return -(-n_rows // multiple) * multiple


def require_precision(precision: str, device: str) -> None:
    """RAISES (ValueError): EL016 if a device of torch's, by name, does not compute in it."""
    if not _is_supported(precision, device):
        known = ", ".join(name for name in PRECISIONS if _is_supported(name, device))
        raise ValueError(Errors.EL016.format(device=device, value=precision, known=known))


def _is_supported(precision: str, device: str) -> bool:
    if precision == "fp32":
        return True
    if device == "cuda":
        return precision == "fp16" or (precision == "bf16" and torch.cuda.is_bf16_supported())
    if device != "cpu" or not _has_onednn():
        return False
    try:
        if precision == "int8":
            # Processors without instructions for it add up in sixteen bits, which are too few.
            ones = torch.ones(64, 64, device="cpu")
            return bool((_Int8(ones, None)(ones) - 64.0).abs().max() < 1.0)
        # Where it is not supported, oneDNN converts to float32, at a loss of time.
        return bool(getattr(torch.ops.mkldnn, f"_is_mkldnn_{precision}_supported")())
    except Exception as err:
        # Private operators, which may be missing or take other arguments.
        logger.debug("No %s on the %s: %r", precision, device, err)
        return False


def _has_onednn() -> bool:
    return torch.backends.mkldnn.is_available() and bool(torch.backends.mkldnn.enabled)


def pack_linear(
    weight: Tensor, bias: Optional[Tensor] = None, precision: str = "fp32", least_rows: int = 1
) -> Linear:
    """Make a function from X, shape (n_rows, n_in), to X W + b, a new tensor of shape (n_rows,
    n_out), in a precision; inputs and outputs are float32.

    A row's result does not depend on the other rows, except for the order of summation; with
    another precision than "fp32" and at least two rows, not for that either. Weight and bias,
    float32, are copied; `least_rows` are the fewest of an input."""
    if precision == "int8":
        return _Int8(weight, bias)
    return _Float(weight, bias, DTYPES[precision], least_rows)


class _Float:
    """X W + b in a type of floating-point numbers."""

    def __init__(
        self, weight: Tensor, bias: Optional[Tensor], dtype: torch.dtype, least_rows: int
    ) -> None:
        self.dtype = dtype
        self.n_weights = weight.numel()
        self.bias = None if bias is None else bias.to(dtype, copy=True)
        self.weight: Optional[Tensor] = weight.to(dtype, copy=True).contiguous()
        self.packed = _pack_weight(self.weight)
        if self.packed is not None and self._is_packed(least_rows):
            self.weight = None
        elif weight.size(0) > weight.size(1) and self.n_weights >= _LEAST_PACKED:
            # A large tall weight is read faster column by column.
            self.weight = self.weight.t().contiguous().t()

    def _is_packed(self, n_rows: int) -> bool:
        # Shorter types are packed whatever their number: the BLAS reads them slowly.
        is_short = self.dtype != torch.float32
        return is_short or (n_rows > 1 and n_rows * self.n_weights >= _LEAST_PACKED)

    def __call__(self, X: Tensor) -> Tensor:
        X = X.to(self.dtype)
        if self.packed is not None and (self.weight is None or self._is_packed(X.size(0))):
            Y = _multiply_packed(X, self.packed, self.bias)
        elif self.bias is None:
            Y = torch.mm(X, cast(Tensor, self.weight))
        else:
            Y = torch.addmm(self.bias, X, cast(Tensor, self.weight))
        return Y.float()


def _pack_weight(weight: Tensor) -> Optional[Tensor]:
    """Lay a weight of shape (n_in, n_out) out for oneDNN. None if this build of torch cannot, or
    computes something else with it."""
    if not _has_onednn():
        return None
    try:
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.t().contiguous(), _TYPICAL_ROWS)
        X = torch.linspace(-1.0, 1.0, 2 * weight.size(0), device=weight.device)
        X = X.view(2, -1).to(weight.dtype)
        agree = torch.allclose(_multiply_packed(X, packed, None), X @ weight, rtol=1e-2, atol=1e-2)
    except Exception as err:
        # Private operators, which may be missing or take other arguments.
        logger.debug("Without packed weights: %r", err)
        return None
    return packed if agree else None


def _multiply_packed(X: Tensor, packed: Tensor, bias: Optional[Tensor]) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(X, packed, bias, "none", [], "")


class _Int8:
    """X W + b with eight-bit integers: each column of W and each row of X, at each call,
    is scaled so that its largest number becomes 127."""

    def __init__(self, weight: Tensor, bias: Optional[Tensor]) -> None:
        scales = weight.abs().amax(dim=0).clamp_(min=_TINY).div_(_INT8_MAX)
        W = weight.div(scales).round_().t().contiguous().to(torch.int8)
        self.packed = torch.ops.onednn.qlinear_prepack(W, [_TYPICAL_ROWS, weight.size(0)])
        self.bias = None if bias is None else bias.clone()
        self.scales = scales
        self.zeros = torch.zeros(len(scales), dtype=torch.int32, device=weight.device)

    def __call__(self, X: Tensor) -> Tensor:
        # A scale for each row, so that batch mates change nothing.
        scales = X.abs().amax(dim=1, keepdim=True).clamp_(min=_TINY).div_(_INT8_MAX)
        rounded = (X / scales).round_().add_(_INT8_ZERO).to(torch.uint8)
        Y = torch.ops.onednn.qlinear_pointwise(
            rounded, 1.0, _INT8_ZERO, self.packed, self.scales, self.zeros,
            None, 1.0, 0, torch.float32, "none", [], "",
        )  # fmt: skip
        return Y.mul_(scales) if self.bias is None else torch.addcmul(self.bias, Y, scales)


class PackedCNN:
    """The same function as `CharCNN`, without gradients.

    A convolution over character embeddings is linear, and there are 261 characters. What each of
    them adds at each place of each filter is a table; a window's outputs are then a sum of as many
    rows as the filter is wide, without any multiplication."""

    def __init__(self, cnn: CharCNN, precision: str) -> None:
        embedding = cnn.embedding.weight.detach()
        self.activation = cnn.activation
        self.tables = [_make_table(embedding, conv) for conv in cnn.convolutions]
        self.highways = [
            _pack_module(cast(Highway, highway).linear, precision) for highway in cnn.highways
        ]
        self.projection = _pack_module(cnn.projection, precision)

    def __call__(self, char_ids: Tensor) -> Tensor:
        """As `CharCNN.forward`."""
        n_words = char_ids.size(0)
        pooled = [_pool(table, bias, char_ids) for table, bias in self.tables]
        Y = self.activation(torch.cat(pooled, dim=1))  # (n_words, n_filters)
        Y = F.pad(Y, (0, 0, 0, round_rows(n_words, least=2) - n_words))
        for highway in self.highways:
            transform, gate = highway(Y).chunk(2, dim=1)
            Y = torch.lerp(Y, transform.relu_(), gate.sigmoid_())
        return self.projection(Y)[:n_words]


def _pack_module(linear: nn.Module, precision: str) -> Linear:
    weight, bias = (part.detach() for part in linear.parameters())
    return pack_linear(weight.t(), bias, precision, least_rows=2)


def _make_table(embedding: Tensor, conv: nn.Module) -> Tuple[Tensor, Tensor]:
    """A table of shape (filter_width * n_characters, n_filters), place by place, and the bias."""
    weight, bias = (part.detach() for part in conv.parameters())
    # (filter_width, n_characters, n_filters)
    table = torch.einsum("ce,new->wcn", embedding, weight)
    return table.reshape(-1, weight.size(0)).contiguous(), bias.clone()


def _pool(table: Tensor, bias: Tensor, char_ids: Tensor) -> Tensor:
    width = table.size(0) // N_CHARACTERS
    windows = char_ids.unfold(1, width, 1)  # (n_words, n_windows, width)
    rows = windows + N_CHARACTERS * torch.arange(width, device=char_ids.device)
    sums = F.embedding_bag(rows.reshape(-1, width), table, mode="sum")
    return sums.view(*windows.shape[:2], -1).amax(dim=1) + bias


class PackedLSTM:
    """An LSTM layer on a CPU without gradients, in memory that stays in the processor's cache.
    With tanh(x) = 2 sigmoid(2 x) - 1, one call does all four gates: the candidate's weights are
    doubled, and the cell is kept doubled, so that

        cell' = sigmoid(f) * cell + 4 sigmoid(i) * (sigmoid(j) - 1/2)
        h' = (sigmoid(o) * (sigmoid(cell') - 1/2)) (2 Wp)
    """

    def __init__(self, layer: LSTMLayer, precision: str) -> None:
        n = layer.cell_width
        weight, bias = layer.weight.detach().clone(), layer.bias.detach().clone()
        weight[:, 3 * n :] *= 2.0
        bias[3 * n :] *= 2.0
        input_weight, recurrent_weight = weight.chunk(2)
        # A tile is mostly more than a row; for one, a second copy would not pay.
        self.input = pack_linear(input_weight, bias, precision, least_rows=2)
        self.recurrent = pack_linear(recurrent_weight, None, precision)
        self.projection: Optional[Linear] = None
        if layer.projection is not None:
            self.projection = pack_linear(2.0 * layer.projection.detach(), None, precision)
        self.cell_width = n
        # A single row takes other kernels than two, which add up in another order. The short types
        # would round that up, and later steps make more of it. With float32 it is noise, and a
        # kernel for one row is up to three times as fast.
        self.least_rows = 1 if precision == "fp32" else 2
        self.cell_clip, self.proj_clip = layer.cell_clip, layer.proj_clip
        self.tile_rows = max(_LEAST_TILE_ROWS, _TILE_NUMBERS // (4 * n))

    def __call__(
        self, X: Tensor, batch_sizes: List[int], state: LayerState, ids: Optional[Tensor] = None
    ) -> Tuple[Tensor, LayerState]:
        """As `LSTMLayer.forward`, but inputs and outputs have N_PADDING rows below the packed ones.
        With `ids`, rows of X to read, shape (sum(batch_sizes) + N_PADDING,), X are vectors of
        distinct words, whose part of the gates is computed once for each."""
        word_gates = None
        if ids is not None:
            word_gates = self.input(_pad_rows(X, round_rows(len(X), self.least_rows)))
        n_rows = len(X) if ids is None else len(ids)
        n_seqs = batch_sizes[0]
        n_state_rows = round_rows(n_seqs, self.least_rows)
        hidden = _pad_rows(state[0], n_state_rows)  # (n_state_rows, width // 2)
        cell = _pad_rows(state[1], n_state_rows).mul_(2.0)  # (n_state_rows, cell_width)
        scratch = torch.empty_like(cell)
        Y = hidden.new_empty(n_rows, hidden.size(1))  # (n_rows, width // 2)
        last_hidden, last_cell = torch.empty_like(state[0]), torch.empty_like(state[1])
        n_running, start = n_seqs, 0
        for sizes in _tiles(batch_sizes, self.tile_rows):
            end = start + round_rows(_count_read(sizes, self.least_rows))
            # (rows of the tile, 4 * cell_width)
            if word_gates is None or ids is None:
                tile = self.input(X[start:end])
            else:
                tile = word_gates.index_select(0, ids[start:end])
            first = 0
            for n in sizes:
                if n < n_running:
                    # These sequences ended with the step before.
                    last_hidden[n:n_running] = hidden[n:n_running]
                    last_cell[n:n_running] = cell[n:n_running]
                    n_running = n
                # Rows beyond n hold numbers of sequences that have ended.
                m = round_rows(n, self.least_rows)
                # (m, 4 * cell_width)
                gates = self.recurrent(hidden[:m]).add_(tile[first : first + m])
                hidden = self._step(gates, cell[:m], scratch[:m])  # (m, width // 2)
                Y[start : start + n] = hidden[:n]
                first += n
                start += n
        last_hidden[:n_running], last_cell[:n_running] = hidden[:n_running], cell[:n_running]
        Y[start:] = 0.0
        return Y, (last_hidden, last_cell.mul_(0.5))

    def _step(self, gates: Tensor, cell: Tensor, scratch: Tensor) -> Tensor:
        """Overwrites its arguments; `cell` becomes the new one. RETURNS the output."""
        i, f, o, j = gates.sigmoid_().chunk(4, dim=1)  # each (m, cell_width)
        cell.mul_(f).addcmul_(i, j.sub_(0.5), value=4.0)
        if self.cell_clip is not None:
            cell.clamp_(-2.0 * self.cell_clip, 2.0 * self.cell_clip)
        output = torch.sigmoid(cell, out=scratch).sub_(0.5).mul_(o)  # (m, cell_width)
        if self.projection is None:
            return output * 2.0
        hidden = self.projection(output)  # (m, width // 2)
        if self.proj_clip is not None:
            hidden.clamp_(-self.proj_clip, self.proj_clip)
        return hidden


def _tiles(batch_sizes: List[int], n_rows: int) -> Iterator[List[int]]:
    """Group consecutive steps: one, or as many as fit into `n_rows`."""
    tile: List[int] = []
    for n in batch_sizes:
        if tile and sum(tile) + n > n_rows:
            yield tile
            tile = []
        tile.append(n)
    yield tile


def _count_read(sizes: List[int], least_rows: int) -> int:
    """Rows of a tile that its steps read, each rounded up."""
    first, end = 0, 0
    for n in sizes:
        end = max(end, first + round_rows(n, least_rows))
        first += n
    return end


def _pad_rows(X: Tensor, n_rows: int) -> Tensor:
    """A copy with zeros below."""
    padded = X.new_zeros(n_rows, X.size(1))
    padded[: X.size(0)] = X
    return padded


class TorchLSTM:
    """An LSTM layer without clips and gradients by torch's own LSTM: on a CPU for one sequence, on
    a GPU for any."""

    def __init__(self, layer: LSTMLayer, dtype: torch.dtype) -> None:
        self.weights = [weight.detach().to(dtype) for weight in make_torch_weights(layer)]

    def __call__(
        self, X: Tensor, batch_sizes: List[int], state: LayerState
    ) -> Tuple[Tensor, LayerState]:
        """As `PackedLSTM`, without rows below the packed ones."""
        # There are no gradients, but where they are switched on oneDNN takes a kernel that needs a
        # sixth less time.
        with torch.enable_grad():
            Y, (hidden, cell) = run_torch_lstm(X, self.weights, batch_sizes, state)
        return Y.float(), (hidden.float(), cell.float())
