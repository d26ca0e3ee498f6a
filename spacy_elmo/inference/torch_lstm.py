"""LSTM layers without gradients by torch's own LSTM."""

from contextlib import contextmanager
from threading import Lock
from typing import Iterator, List, Tuple

import torch
from torch import Tensor, nn
from torch.backends import cudnn
from torch.nn.utils.rnn import PackedSequence

from ..bilm.lstm import LayerState, LSTMLayer, find_torch_weights
from .threads import raise_if_stopped

# Steps of a sequence that are one call: an interrupt is heard after it.
_MOST_STEPS = 512


class SingleLayer:
    """An LSTM layer for one sequence: torch's loop over its steps, which needs no interpreter, so
    that the two directions run side by side. The operator itself, not `nn.LSTM`: modules switch
    gradients off while they are made, and an interrupt would leave it at that.

    layer (LSTMLayer): without clips; its weights are copied.
    """

    def __init__(self, layer: LSTMLayer) -> None:
        weights = find_torch_weights(layer.weight, layer.bias, layer.projection)
        self.weights = [weight.detach() for weight in weights.values()]

    def __call__(
        self, X: Tensor, batch_sizes: List[int], state: LayerState
    ) -> Tuple[Tensor, LayerState]:
        """X (Tensor): inputs, shape (n_steps, width // 2).
        batch_sizes (List[int]): 1 for each step.
        state (LayerState): before the first step, of one sequence.
        RETURNS (Tuple[Tensor, LayerState]): outputs in the shape of X, and the state after the
            last step.
        """
        n_steps = len(batch_sizes)
        sizes = torch.ones(n_steps, dtype=torch.int64, device="cpu")
        hidden, cell = state[0][None], state[1][None]  # (1, 1, width // 2), (1, 1, cell_width)
        Ys: List[Tensor] = []
        for start in range(0, n_steps, _MOST_STEPS):
            raise_if_stopped()
            piece = slice(start, start + _MOST_STEPS)
            # Packed: with a projection, the other form warns that oneDNN does not know it.
            Y, hidden, cell = torch.lstm(
                X[piece], sizes[piece], (hidden, cell), self.weights, True, 1, 0.0, False, False
            )
            Ys.append(Y)
        return Ys[0] if len(Ys) == 1 else torch.cat(Ys), (hidden[0], cell[0])


# A flag of the process, which threads change by turns.
_FLAG = Lock()


@contextmanager
def _without_cudnn() -> Iterator[None]:
    """ "fp32" means it: in cuDNN's LSTM floats have ten bits (TF32) unless other flags of the
    process, which cannot all be read, say otherwise."""
    with _FLAG:
        before = cudnn.enabled
        cudnn.enabled = False
        try:
            yield
        finally:
            cudnn.enabled = before


class FusedLayer:
    """An LSTM layer without clips, without gradients: one call of torch's own LSTM.

    layer (LSTMLayer): its weights are copied.
    dtype (torch.dtype): of the computation; what comes in and goes out is float32.
    """

    def __init__(self, layer: LSTMLayer, dtype: torch.dtype) -> None:
        width = layer.weight.size(0) // 2
        n_out = 0 if layer.projection is None else width
        self.dtype = dtype
        # Random weights would use up the device's random numbers.
        lstm = nn.LSTM(width, layer.cell_width, proj_size=n_out, device="meta")
        self.lstm = lstm.to_empty(device=layer.weight.device)
        weights = find_torch_weights(layer.weight, layer.bias, layer.projection)
        self.lstm.load_state_dict(weights)
        self.lstm.to(dtype).eval().requires_grad_(False)

    def __call__(
        self, X: Tensor, batch_sizes: List[int], state: LayerState
    ) -> Tuple[Tensor, LayerState]:
        """X (Tensor): packed inputs, shape (n_rows, width // 2), rows beyond
            sum(batch_sizes) not read.
        batch_sizes (List[int]): rows of each step, never growing.
        state (LayerState): before the first step, longest sequence first.
        RETURNS (Tuple[Tensor, LayerState]): packed outputs in the shape of X, and the
            state after each sequence's last step.
        """
        n_rows = sum(batch_sizes)
        packed = PackedSequence(X[:n_rows].to(self.dtype), torch.tensor(batch_sizes, device="cpu"))
        hidden, cell = (part[None].to(self.dtype) for part in state)
        with _without_cudnn():
            output, (hidden, cell) = self.lstm(packed, (hidden, cell))
        Y = torch.zeros_like(X)
        Y[:n_rows] = output.data
        return Y, (hidden[0].float(), cell[0].float())


class SteppedLayer:
    """An LSTM layer that torch has none for, since it clips or its projection is no narrower than
    its cells: step by step.

    layer (LSTMLayer): its weights are used.
    dtype (torch.dtype): of the products.
    """

    def __init__(self, layer: LSTMLayer, dtype: torch.dtype) -> None:
        self.layer = layer
        self.dtype = dtype

    def __call__(
        self, X: Tensor, batch_sizes: List[int], state: LayerState
    ) -> Tuple[Tensor, LayerState]:
        """As `FusedLayer`."""
        n_rows = sum(batch_sizes)
        Y = torch.zeros_like(X)
        Y[:n_rows], last = self.layer(X[:n_rows], batch_sizes, state, self.dtype)
        return Y, last
