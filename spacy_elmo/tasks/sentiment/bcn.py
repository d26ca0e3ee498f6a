"""The biattentive classification network over any tok2vec, for spaCy's `textcat`."""

from functools import partial
from typing import Any, Callable, List, Optional, Tuple, cast

import torch
from spacy.tokens import Doc
from thinc.api import Linear, Logistic, Model, Softmax, chain
from thinc.types import Floats2d
from torch import Tensor, nn

from ...utils import require_least
from ..shared.attention import attend, pad, pool_max, pool_mean, pool_min, pool_weighted
from ..shared.bilstm import BiLSTM, require_even
from ..shared.dropout import Dropout, drop
from ..shared.padded_batches import plan_padded
from ..shared.torch_layer import run_rows, torch_layer

Tok2VecModel = Model[List[Doc], List[Floats2d]]


class BCN(nn.Module):
    """A sequence -> one vector (McCann et al. 2017, section 5, for one text, which attends to
    itself; as in Peters et al. 2018, section 4).

    nI (int): width of a token.
    width (int): of encoder and integrator, both directions together.
    pieces (int): of a maxout.
    """

    def __init__(self, nI: int, width: int, pieces: int) -> None:
        super().__init__()
        self.project = nn.Linear(nI, width)
        self.encode = BiLSTM(width, width)
        self.integrate = BiLSTM(3 * width, width)
        self.attend = nn.Linear(width, 1)
        self.reduce = nn.ModuleList(
            nn.Linear(n_in, n_out * pieces)
            for n_in, n_out in ((4 * width, 2 * width), (2 * width, width))
        )
        self.pieces = pieces

    def forward(self, X: Tensor, lengths: List[int], dropout: float = 0.0) -> Tensor:
        """X (Tensor): shape (n_tokens, nI). lengths (List[int]): of the texts; any may be 0, not
        all. dropout (float): before each layer of weights.
        RETURNS (Tensor): shape (n_docs, width)."""
        X = torch.relu(self.project(drop(X, dropout)))
        X = self.encode(drop(X, dropout), lengths)  # (n_tokens, width)
        padded, mask = pad(X, lengths)
        context = attend(padded, padded, mask, mask)[mask]  # (n_tokens, width)
        joined = torch.cat([X, X - context, X * context], dim=1)
        X = drop(self.integrate(drop(joined, dropout), lengths), dropout)
        padded, mask = pad(X, lengths)
        scores = self.attend(padded).squeeze(2)
        weighted = pool_weighted(padded, scores, mask)
        pools = [pool(padded, mask) for pool in (pool_max, pool_mean, pool_min)]
        Y = torch.cat([*pools, weighted], dim=1)  # (n_docs, 4 * width)
        for layer in self.reduce:
            Y = layer(drop(Y, dropout)).unflatten(1, (-1, self.pieces)).amax(dim=2)
        return drop(Y, dropout)


def build_textcat_bcn_v1(
    tok2vec: Tok2VecModel,
    exclusive_classes: bool,
    width: int = 200,
    maxout_pieces: int = 4,
    dropout: float = 0.3,
    nO: Optional[int] = None,
) -> Model[List[Doc], Floats2d]:
    """Classify texts by their contextual vectors: a biLSTM encodes them, attention of the text to
    itself adds context, a second biLSTM integrates both, and what is pooled (max, mean, min,
    attention) goes through two maxout layers (the BCN of McCann et al. 2017).

    tok2vec (Tok2VecModel): any; its width may be unknown until the model is initialized.
    exclusive_classes (bool): true for `textcat`, false for `textcat_multilabel`.
    width (int): of both biLSTMs, half for each direction; even.
    maxout_pieces (int): at least 1.
    dropout (float): probability in [0, 1) that an input of a layer is dropped in training. Not
        driven by [training] dropout.
    nO (Optional[int]): number of labels; null to have the component set it.
    RETURNS (Model[List[Doc], Floats2d]): docs -> shape (n_docs, n_labels): probabilities that sum
        to 1, or one probability each.
    RAISES (ValueError): EL192 for an odd width, EL012 without pieces, EL191 for a `dropout` out
        of range.
    """
    require_even("width", width)
    require_least("maxout_pieces", maxout_pieces, 1)
    build = partial(BCN, width=width, pieces=maxout_pieces)
    attrs = {"dropout": Dropout(dropout)}
    pooled = torch_layer("bcn", bcn_forward, build, nO=width, attrs=attrs)
    output: Model[Floats2d, Floats2d] = (
        Softmax(nO=nO, nI=width)
        if exclusive_classes
        else chain(Linear(nO=nO, nI=width), Logistic())
    )
    model: Model = chain(tok2vec, pooled, output)
    model.set_ref("tok2vec", tok2vec)
    model.set_ref("output_layer", output)
    # Where `textcat` looks whether it fits.
    model.attrs["multi_label"] = not exclusive_classes
    return model


def bcn_forward(
    model: Model, Xs: List[Floats2d], is_train: bool
) -> Tuple[Floats2d, Callable[[Floats2d], List[Floats2d]]]:
    """Xs (List[Floats2d]): one array a doc, shape (n_tokens, nI); any may be empty.
    RETURNS (Tuple[Floats2d, Callable]): shape (n_docs, width), zeros for no tokens in the whole
        batch or in a doc; and the way back.
    """
    Y: Any = model.ops.alloc2f(len(Xs), model.get_dim("nO"))
    dropout = model.attrs["dropout"].rate if is_train else 0.0
    ways_back = []
    for batch in plan_padded([len(X) for X in Xs]):
        Y[batch], backprop_rows = run_rows(model, [Xs[i] for i in batch], is_train, dropout=dropout)
        if is_train:
            ways_back.append((batch, backprop_rows))

    def backprop(dY: Floats2d) -> List[Floats2d]:
        dXs = [model.ops.alloc2f(*X.shape) for X in Xs]
        for batch, backprop_rows in ways_back:
            for i, dX in zip(batch, backprop_rows(cast(Any, dY)[batch])):
                dXs[i] = dX
        return dXs

    return Y, backprop
