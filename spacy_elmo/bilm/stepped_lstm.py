"""LSTM layers that clip, without gradients for a GPU: its own LSTM has no clips."""

import threading
from typing import Callable, Dict, List, Optional, Tuple

import torch
from torch import Tensor

from .lstm import LayerState, LSTMLayer

Step = Callable[[], None]

# Rows are rounded up to a multiple of this, so that few graphs are captured.
_ROWS = 16
# Graphs that a layer keeps, each with its buffers.
_MOST_GRAPHS = 16
# Runs before a capture, in which torch's libraries set themselves up.
_N_WARM_UP = 3


class SteppedLayer:
    """An LSTM layer without gradients, step by step. On CUDA a step is captured once for
    each number of rows and replayed: one launch instead of a dozen.

    layer (LSTMLayer): its weights are copied.
    dtype (torch.dtype): of the products; what comes in and goes out is float32.
    """

    def __init__(self, layer: LSTMLayer, dtype: torch.dtype) -> None:
        self.weight = layer.weight.detach().to(dtype, copy=True)
        self.bias = layer.bias.detach().clone()
        self.projection: Optional[Tensor] = None
        if layer.projection is not None:
            self.projection = layer.projection.detach().to(dtype, copy=True)
        self.cell_clip, self.proj_clip = layer.cell_clip, layer.proj_clip
        self._buffers: Dict[int, _Buffers] = {}
        # Callers share the buffers.
        self._lock = threading.Lock()

    def __call__(
        self, X: Tensor, batch_sizes: List[int], state: LayerState
    ) -> Tuple[Tensor, LayerState]:
        """As `FusedLayer`."""
        hidden, cell = state
        last_hidden, last_cell = hidden.clone(), cell.clone()
        Y = torch.zeros_like(X)
        with self._lock:
            at = self._find_buffers(batch_sizes[0], hidden.size(1), cell)
            at.start(hidden, cell)
            start, n_running = 0, batch_sizes[0]
            for n in batch_sizes:
                # Rows beyond n hold numbers of sequences that have ended.
                last_hidden[n:n_running] = at.hidden[n:n_running]
                last_cell[n:n_running] = at.cell[n:n_running]
                at.X[:n] = X[start : start + n]
                at.step()
                Y[start : start + n] = at.hidden[:n]
                start, n_running = start + n, n
            last_hidden[:n_running] = at.hidden[:n_running]
            last_cell[:n_running] = at.cell[:n_running]
        return Y, (last_hidden, last_cell)

    def _find_buffers(self, n_seqs: int, width: int, like: Tensor) -> "_Buffers":
        n_rows = -(-n_seqs // _ROWS) * _ROWS
        if n_rows not in self._buffers:
            if len(self._buffers) == _MOST_GRAPHS:
                del self._buffers[next(iter(self._buffers))]
            self._buffers[n_rows] = _Buffers(self, n_rows, width, like)
        return self._buffers[n_rows]

    def update(self, X: Tensor, hidden: Tensor, cell: Tensor) -> None:
        """One step of time, in place. X (Tensor): inputs, shape (n_rows, width // 2).
        hidden, cell (Tensor): the state, (n_rows, width // 2) and (n_rows, cell_width)."""
        inputs = torch.cat([X, hidden], dim=1).to(self.weight.dtype)
        gates = torch.mm(inputs, self.weight).float() + self.bias
        i, f, o, j = gates.chunk(4, dim=1)
        cell.mul_(torch.sigmoid(f)).add_(torch.sigmoid(i) * torch.tanh(j))
        if self.cell_clip is not None:
            cell.clamp_(-self.cell_clip, self.cell_clip)
        output = torch.sigmoid(o) * torch.tanh(cell)
        if self.projection is not None:
            output = torch.mm(output.to(self.projection.dtype), self.projection).float()
            if self.proj_clip is not None:
                output.clamp_(-self.proj_clip, self.proj_clip)
        hidden.copy_(output)


class _Buffers:
    """What a step for a fixed number of rows reads and writes, X and hidden of shape
    (n_rows, width), cell of (n_rows, cell_width); and the step itself."""

    def __init__(self, layer: SteppedLayer, n_rows: int, width: int, like: Tensor) -> None:
        self.X = like.new_zeros(n_rows, width)
        self.hidden = like.new_zeros(n_rows, width)
        self.cell = like.new_zeros(n_rows, like.size(1))
        self.step: Step = lambda: layer.update(self.X, self.hidden, self.cell)
        if like.device.type == "cuda":
            self.step = _capture(self.step)

    def start(self, hidden: Tensor, cell: Tensor) -> None:
        """hidden, cell (Tensor): before the first step; rows beyond them become zero."""
        for buffer, part in ((self.hidden, hidden), (self.cell, cell)):
            buffer.zero_()
            buffer[: len(part)] = part
        self.X.zero_()


def _capture(step: Step) -> Step:
    """RETURNS (Step): Replays what `step` does on the device; itself if that cannot be
    captured. What it writes is not kept from here on."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(_N_WARM_UP):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    try:
        # Other threads may use the device meanwhile.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            step()
    except RuntimeError:
        return step
    return graph.replay
