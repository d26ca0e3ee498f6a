"""A stack of LSTM layers for one reading direction, of which the biLM has two."""

from typing import List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

from .config import BiLMConfig
from .lstm_gradient import run_layer

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
