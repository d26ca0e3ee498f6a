"""`SingleLayer`: an LSTM layer without gradients for one sequence, on a CPU."""

from typing import List, Tuple

import torch
from torch import Tensor

from ..bilm.lstm import LayerState, LSTMLayer
from ..bilm.torch_weights import find_torch_weights
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
