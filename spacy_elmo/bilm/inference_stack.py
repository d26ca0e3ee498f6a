"""`InferenceStack`: the LSTM layers of one direction, as fast as the device can."""

from typing import Callable, Iterator, List, Sequence, Tuple, cast

from torch import Tensor

from .fused_lstm import FusedLayer, SteppedLayer
from .lstm import LayerState, LSTMLayer, LSTMStack
from .packed_linear import DTYPES
from .packed_lstm import PackedLayer

_Layer = Callable[[Tensor, List[int], LayerState], Tuple[Tensor, LayerState]]


class InferenceStack:
    """The same function as `LSTMStack`, without gradients.

    stack (LSTMStack): its weights are copied.
    precision (str): of the products.
    """

    def __init__(self, stack: LSTMStack, precision: str) -> None:
        self.skip_connections = stack.skip_connections
        self.layers = [_make_layer(cast(LSTMLayer, layer), precision) for layer in stack.layers]

    def __call__(
        self, X: Tensor, batch_sizes: List[int], states: Sequence[LayerState]
    ) -> Iterator[Tuple[Tensor, LayerState]]:
        """X (Tensor): packed word vectors, in the shape that a `PackedLayer` reads.
        batch_sizes (List[int]): rows of each step, never growing.
        states (Sequence[LayerState]): one for each layer.
        YIELDS (Tuple[Tensor, LayerState]): of each layer, its packed outputs in the
            shape of X, and its last state.
        """
        for depth, (layer, state) in enumerate(zip(self.layers, states)):
            Y, last = layer(X, batch_sizes, state)
            X = Y.add_(X) if self.skip_connections and depth > 0 else Y
            yield X, last


def _make_layer(layer: LSTMLayer, precision: str) -> _Layer:
    if layer.weight.device.type == "cpu":
        return PackedLayer(layer, precision)
    clips = layer.cell_clip is not None or layer.proj_clip is not None
    make = SteppedLayer if clips else FusedLayer
    return make(layer, DTYPES[precision])
