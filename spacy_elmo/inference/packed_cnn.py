"""`PackedCNN`: the character CNN laid out for inference.

A convolution over character embeddings is linear, and there are 261 characters: what
each of them adds at each place of each filter is a table. A window's outputs are then a
sum of as many rows as the filter is wide, without any multiplication.
"""

from typing import Tuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..bilm.char_cnn import CharCNN, Highway
from ..bilm.characters import N_CHARACTERS
from .packed_linear import PackedLinear, round_rows


class PackedCNN:
    """The same function as `CharCNN`, without gradients.

    cnn (CharCNN): its weights are copied.
    precision (str): of the products.
    """

    def __init__(self, cnn: CharCNN, precision: str) -> None:
        embedding = cnn.embedding.weight.detach()
        self.activation = cnn.activation
        self.tables = [_make_table(embedding, conv) for conv in cnn.convolutions]
        self.highways = [_PackedHighway(cast(Highway, h), precision) for h in cnn.highways]
        self.projection = _pack(cnn.projection, precision)

    def __call__(self, char_ids: Tensor) -> Tensor:
        """char_ids (Tensor): int64, shape (n_words, n_chars), n_chars at least the width
            of the widest filter.
        RETURNS (Tensor): word vectors, shape (n_words, width // 2).
        """
        n_words = char_ids.size(0)
        pooled = [_pool(table, bias, char_ids) for table, bias in self.tables]
        Y = self.activation(torch.cat(pooled, dim=1))  # (n_words, n_filters)
        Y = F.pad(Y, (0, 0, 0, round_rows(n_words, least=2) - n_words))
        for highway in self.highways:
            Y = highway(Y)
        return self.projection(Y)[:n_words]


class _PackedHighway:
    def __init__(self, highway: Highway, precision: str) -> None:
        self.linear = _pack(highway.linear, precision)

    def __call__(self, X: Tensor) -> Tensor:
        transform, gate = self.linear(X).chunk(2, dim=1)
        return torch.lerp(X, transform.relu_(), gate.sigmoid_())


def _pack(linear: nn.Module, precision: str) -> PackedLinear:
    weight, bias = (part.detach() for part in linear.parameters())
    return PackedLinear(weight.t(), bias, precision, least_rows=2)


def _make_table(embedding: Tensor, conv: nn.Module) -> Tuple[Tensor, Tensor]:
    """RETURNS (Tuple[Tensor, Tensor]): shape (filter_width * n_characters, n_filters), place
    by place, and the bias."""
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
