"""`CharCNN`: character ids -> word vectors."""

from typing import cast

import torch
from torch import Tensor, nn

from .characters import N_CHARACTERS, PADDING
from .config import BiLMConfig
from .filter_gradient import run_filters

_ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}


class Highway(nn.Module):
    """Let a learned gate choose between a transformed input and the input:
    y = s * relu(x Wt + bt) + (1 - s) * x with s = sigmoid(x Wc + bc).

    Source: Srivastava et al. 2015; the sign convention is bilm-tf's.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        # One product for both: the first half transforms, the second half gates.
        self.linear = nn.Linear(width, 2 * width)

    def forward(self, X: Tensor) -> Tensor:
        """X (Tensor): shape (n_words, width). RETURNS (Tensor): the same shape."""
        transform, gate = self.linear(X).chunk(2, dim=1)
        return torch.lerp(X, torch.relu(transform), torch.sigmoid(gate))


class CharCNN(nn.Module):
    """Make a word's vector from its characters: embeddings, convolutions of several
    widths, max-pool over the positions, activation, highway layers, projection.

    Padding characters inside a word are embedded like any other and take part in the
    max-pool, so a row may be cropped only down to its used positions plus the widest
    filter: that keeps every distinct window, the all-padding one included.

    Source: Kim et al. 2016; Peters et al. 2018, section 3.4; bilm-tf `model.py`.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.activation = _ACTIVATIONS[config.activation]
        self.embedding = nn.Embedding(N_CHARACTERS, config.char_width)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.char_width, number, width) for width, number in config.filters
        )
        self.highways = nn.ModuleList(Highway(config.n_filters) for _ in range(config.n_highway))
        self.projection = nn.Linear(config.n_filters, config.direction_width)

    def forward(self, char_ids: Tensor) -> Tensor:
        """char_ids (Tensor): int64, shape (n_words, n_chars), n_chars at least the
            width of the widest filter.
        RETURNS (Tensor): word vectors, shape (n_words, width // 2).
        """
        pooled = run_filters(
            self.embedding(char_ids),
            (char_ids != PADDING).sum(dim=1),
            self.embedding.weight[PADDING],
            [cast(Tensor, conv.weight) for conv in self.convolutions],
            [cast(Tensor, conv.bias) for conv in self.convolutions],
        )
        # The activation is monotone: after the max it costs n_chars times less.
        Y = self.activation(pooled)  # (n_words, n_filters)
        for highway in self.highways:
            Y = highway(Y)
        return self.projection(Y)
