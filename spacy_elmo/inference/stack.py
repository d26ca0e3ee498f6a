"""`InferenceStack`: the LSTM layers of one direction, as fast as the device can."""

from typing import Callable, Iterator, List, Sequence, Tuple, cast

import torch
from torch import Tensor

from ..bilm.lstm import LayerState, LSTMLayer, LSTMStack
from ..bilm.torch_weights import has_torch_layer
from .gpu_lstm import FusedLayer, SteppedLayer
from .packed_linear import DTYPES
from .packed_lstm import N_PADDING, PackedLayer
from .single_lstm import SingleLayer

_Layer = Callable[[Tensor, List[int], LayerState], Tuple[Tensor, LayerState]]

# Numbers that the gates of a batch's distinct words may take at most.
_MOST_WORD_GATES = 2**24


class InferenceStack:
    """The same function as `LSTMStack`, without gradients.

    stack (LSTMStack): its weights are copied.
    precision (str): of the products.
    """

    def __init__(self, stack: LSTMStack, precision: str) -> None:
        self.skip_connections = stack.skip_connections
        layers = [cast(LSTMLayer, layer) for layer in stack.layers]
        self.layers = [_make_layer(layer, precision) for layer in layers]
        # For one sequence: faster, and the same but for the order of summation.
        self.single: Sequence[_Layer] = []
        if precision == "fp32" and all(_is_plain(layer) for layer in layers):
            self.single = [SingleLayer(layer) for layer in layers]

    def __call__(
        self, vectors: Tensor, ids: Tensor, batch_sizes: List[int], states: Sequence[LayerState]
    ) -> Iterator[Tuple[Tensor, LayerState]]:
        """vectors (Tensor): of distinct words, shape (n_words, width // 2).
        ids (Tensor): of the packed words, shape (sum(batch_sizes),).
        batch_sizes (List[int]): rows of each step, never growing.
        states (Sequence[LayerState]): one for each layer, longest sequence first.
        YIELDS (Tuple[Tensor, LayerState]): of each layer, its packed outputs, shape
            (sum(batch_sizes) + N_PADDING, width // 2), of one sequence perhaps without these
            last rows, and its last state.
        """
        is_single = bool(self.single) and batch_sizes[0] == 1
        first, *others = self.single if is_single else self.layers
        if isinstance(first, PackedLayer) and _are_repeated(vectors, ids, first.cell_width):
            X, last = first.read_words(vectors, ids, batch_sizes, states[0])
        else:
            X = vectors[ids]
            if not is_single:
                X = torch.cat([X, X.new_zeros(N_PADDING, X.size(1))])
            X, last = first(X, batch_sizes, states[0])
        yield X, last
        for layer, state in zip(others, states[1:]):
            Y, last = layer(X, batch_sizes, state)
            X = Y.add_(X) if self.skip_connections else Y
            yield X, last


def _are_repeated(vectors: Tensor, ids: Tensor, cell_width: int) -> bool:
    """Whether it pays to compute gates for each distinct word."""
    n_words = len(vectors)
    return 1.5 * n_words < len(ids) and n_words * 4 * cell_width <= _MOST_WORD_GATES


def _make_layer(layer: LSTMLayer, precision: str) -> _Layer:
    if layer.weight.device.type == "cpu":
        return PackedLayer(layer, precision)
    is_plain = has_torch_layer(layer.projection, (layer.cell_clip, layer.proj_clip))
    make = FusedLayer if is_plain else SteppedLayer
    return make(layer, DTYPES[precision])


def _is_plain(layer: LSTMLayer) -> bool:
    """Whether it is on a CPU, and torch's own LSTM can be the same: that sees a projection by other
    widths of output and cells."""
    clips = layer.cell_clip is not None or layer.proj_clip is not None
    is_seen = layer.projection is None or layer.weight.size(0) // 2 != layer.cell_width
    return layer.weight.device.type == "cpu" and not clips and is_seen
