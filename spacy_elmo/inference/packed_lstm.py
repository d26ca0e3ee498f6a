"""`PackedLayer`: an LSTM layer laid out for inference on a CPU.

The same function as `LSTMLayer`, without gradients and with less to do: sigmoids only,
in place, in memory that stays in the processor's cache.
"""

from typing import Callable, Iterator, List, Optional, Tuple

import torch
from torch import Tensor

from ..bilm.lstm import LayerState, LSTMLayer
from .packed_linear import MOST_ROUNDING, PackedLinear, choose_least_rows, round_rows
from .threads import raise_if_stopped

# Numbers of gates that are computed ahead of the recurrence: what stays in the cache.
_TILE_NUMBERS = 2**18
_LEAST_TILE_ROWS = 64
# Rows below the packed ones that may be read, as numbers of rows are rounded up: once
# for a step, and once for a tile.
N_PADDING = 2 * MOST_ROUNDING


class PackedLayer:
    """An LSTM layer without gradients. With tanh(x) = 2 sigmoid(2 x) - 1, one call does
    all four gates: the candidate's weights are doubled, and the cell is kept doubled, so
    that

        cell' = sigmoid(f) * cell + 4 sigmoid(i) * (sigmoid(j) - 1/2)
        h' = (sigmoid(o) * (sigmoid(cell') - 1/2)) (2 Wp)

    layer (LSTMLayer): its weights are copied.
    precision (str): of the products.
    """

    def __init__(self, layer: LSTMLayer, precision: str) -> None:
        n = layer.cell_width
        weight, bias = layer.weight.detach().clone(), layer.bias.detach().clone()
        weight[:, 3 * n :] *= 2.0
        bias[3 * n :] *= 2.0
        input_weight, recurrent_weight = weight.chunk(2)
        # A tile is mostly more than a row; for one, a second copy would not pay.
        self.input = PackedLinear(input_weight, bias, precision, least_rows=2)
        self.recurrent = PackedLinear(recurrent_weight, None, precision)
        self.projection: Optional[PackedLinear] = None
        if layer.projection is not None:
            self.projection = PackedLinear(2.0 * layer.projection.detach(), None, precision)
        self.cell_width = n
        self.least_rows = choose_least_rows(precision)
        self.cell_clip, self.proj_clip = layer.cell_clip, layer.proj_clip
        self.tile_rows = max(_LEAST_TILE_ROWS, _TILE_NUMBERS // (4 * n))

    def read_words(
        self, vectors: Tensor, ids: Tensor, batch_sizes: List[int], state: LayerState
    ) -> Tuple[Tensor, LayerState]:
        """Read words that come more than once: the input's part of the gates is computed
        once for each distinct word.

        vectors (Tensor): of the distinct words, shape (n_words, width // 2).
        ids (Tensor): of the packed words, shape (sum(batch_sizes),).
        batch_sizes, state: as `__call__`.
        RETURNS (Tuple[Tensor, LayerState]): as `__call__`.
        """
        n_words = round_rows(len(vectors), self.least_rows)
        gates = self.input(_pad_rows(vectors, n_words))
        padded = torch.cat([ids, ids.new_zeros(N_PADDING)])

        def read_gates(start: int, n_rows: int) -> Tensor:
            return gates.index_select(0, padded[start : start + n_rows])

        return self._run(read_gates, len(padded), batch_sizes, state)

    def __call__(
        self, X: Tensor, batch_sizes: List[int], state: LayerState
    ) -> Tuple[Tensor, LayerState]:
        """X (Tensor): packed inputs, shape (sum(batch_sizes) + N_PADDING, width // 2).
        batch_sizes (List[int]): rows of each step, never growing.
        state (LayerState): before the first step, longest sequence first.
        RETURNS (Tuple[Tensor, LayerState]): packed outputs in the shape of X, and the
            state after each sequence's last step.
        """

        def read_gates(start: int, n_rows: int) -> Tensor:
            return self.input(X[start : start + n_rows])

        return self._run(read_gates, len(X), batch_sizes, state)

    def _run(
        self,
        read_gates: Callable[[int, int], Tensor],
        n_rows: int,
        batch_sizes: List[int],
        state: LayerState,
    ) -> Tuple[Tensor, LayerState]:
        """read_gates (Callable[[int, int], Tensor]): the input's part of the gates of some
            packed rows, from a row on.
        n_rows (int): of the result."""
        n_seqs = batch_sizes[0]
        n_state_rows = round_rows(n_seqs, self.least_rows)
        hidden = _pad_rows(state[0], n_state_rows)  # (n_state_rows, width // 2)
        cell = _pad_rows(state[1], n_state_rows).mul_(2.0)  # (n_state_rows, cell_width)
        scratch = torch.empty_like(cell)
        Y = hidden.new_empty(n_rows, hidden.size(1))  # (n_rows, width // 2)
        last_hidden, last_cell = torch.empty_like(state[0]), torch.empty_like(state[1])
        n_running, start = n_seqs, 0
        for sizes in _tiles(batch_sizes, self.tile_rows):
            # (rows of the tile, 4 * cell_width)
            tile = read_gates(start, round_rows(_count_read(sizes, self.least_rows)))
            first = 0
            for n in sizes:
                raise_if_stopped()
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
        """Overwrites all it is given; `cell` becomes the new one. RETURNS the output."""
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
    """Group steps that follow each other: one, or as many as fit into `n_rows`."""
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
