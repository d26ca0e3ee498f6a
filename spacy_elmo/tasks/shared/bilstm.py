"""`bilstm`: rows of docs -> rows that have read their doc in both directions."""

from functools import partial
from typing import Callable, Iterable, List, Tuple, cast

import torch
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor, nn

from ...errors import Errors
from ...utils import require_least
from .dropout import Dropout, drop
from .sequence_lstm import order_sequences, run_lstm
from .torch_layer import run_rows, torch_layer

EncoderModel = Model[List[Floats2d], List[Floats2d]]


class BiLSTM(nn.Module):
    """A bidirectional LSTM over sequences of any lengths: what a row becomes does not depend on
    how long the other sequences of the batch are.

    nI (int): width of the input.
    nO (int): width of the output, half for each direction.
    depth (int): layers.
    """

    def __init__(self, nI: int, nO: int, depth: int = 1) -> None:
        super().__init__()
        widths = [nI] + [nO] * (depth - 1)
        self.layers = nn.ModuleList(nn.LSTM(w, nO // 2, bidirectional=True) for w in widths)
        self.nO = nO

    def forward(self, X: Tensor, lengths: List[int], dropout: float = 0.0) -> Tensor:
        """X (Tensor): shape (n_tokens, nI), sequence after sequence. lengths (List[int]): of the
        sequences; any may be 0. dropout (float): between layers, and on the output.
        RETURNS (Tensor): shape (n_tokens, nO)."""
        kept = [length for length in lengths if length]
        if not kept:
            return X.new_zeros(0, self.nO)
        order = order_sequences(kept, X)
        for layer in cast(Iterable[nn.LSTM], self.layers):
            ahead = run_lstm(layer, X, order, backward=False)  # (n_tokens, nO // 2)
            back = run_lstm(layer, X, order, backward=True)
            X = torch.cat([ahead, back], dim=1)  # (n_tokens, nO)
            X = drop(X, dropout)
        return X


class EncoderWithPast(nn.Module):
    """A bidirectional LSTM whose input's last numbers go past it, and stand behind its output
    (Peters et al. 2018, table 3: ELMo at the output). nI, n_past, nO (int): widths of the input, of
    these numbers, and of the LSTM's output."""

    def __init__(self, nI: int, n_past: int, nO: int) -> None:
        super().__init__()
        self.lstm = BiLSTM(nI - n_past, nO)
        self.n_past = n_past

    def forward(self, X: Tensor, lengths: List[int]) -> Tensor:
        """X (Tensor): shape (n_tokens, nI). lengths (List[int]): of the sequences. RETURNS
        (Tensor): shape (n_tokens, nO + n_past)."""
        if not self.n_past:
            return self.lstm(X, lengths)
        read, past = X.split([X.shape[1] - self.n_past, self.n_past], dim=1)
        return torch.cat([self.lstm(read, lengths), past], dim=1)


def bilstm(width: int, depth: int = 1, dropout: float = 0.0) -> EncoderModel:
    """Make the layer. See `build_bilstm_encoder_v1`."""
    require_least("depth", depth, 1)
    require_even("width", width)
    build = partial(BiLSTM, nO=width, depth=depth)
    return torch_layer(
        "bilstm", bilstm_forward, build, nO=width, attrs={"dropout": Dropout(dropout)}
    )


def bilstm_forward(
    model: EncoderModel, Xs: List[Floats2d], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    """Xs (List[Floats2d]): one array a doc, shape (n_tokens, nI); any may be empty.
    RETURNS (Tuple[List[Floats2d], Callable]): arrays of shape (n_tokens, nO), and the way back.
    """
    lengths = model.ops.asarray1i([len(X) for X in Xs])
    if not any(len(X) for X in Xs):
        nI, nO = model.get_dim("nI"), model.get_dim("nO")
        return [model.ops.alloc2f(0, nO) for _ in Xs], lambda _: [
            model.ops.alloc2f(0, nI) for _ in Xs
        ]
    dropout = model.attrs["dropout"].rate if is_train else 0.0
    Y, backprop_rows = run_rows(model, Xs, is_train, dropout=dropout)

    def backprop(dYs: List[Floats2d]) -> List[Floats2d]:
        return backprop_rows(model.ops.xp.concatenate(dYs))

    return model.ops.unflatten(cast(Floats2d, Y), lengths), backprop


def require_even(key: str, value: int) -> None:
    """key (str): a setting. value (int): a width that two directions share. RAISES (ValueError):
    EL192 unless it is even and at least 2."""
    if value < 2 or value % 2:
        raise ValueError(Errors.EL192.format(key=key, value=value))


def build_bilstm_encoder_v1(width: int, depth: int = 1, dropout: float = 0.0) -> EncoderModel:
    """Encode rows by a bidirectional LSTM. As spacy.TorchBiLSTMEncoder.v1, but a doc's rows do
    not depend on the longer docs of its batch, the input may have any width, averaged weights
    are used in evaluation, and nothing is saved as pickle.

    width (int): of the output, half for each direction; even.
    depth (int): layers, at least 1.
    dropout (float): probability in [0, 1) that a number of a layer's output is dropped in
        training. Not driven by [training] dropout.
    RETURNS (EncoderModel): for `encode` of spacy-elmo.ElmoTok2Vec.v2 or spacy.Tok2Vec.v2.
    RAISES (ValueError): EL192 for an odd width, EL012 without layers, EL191 for a `dropout` out
        of range.
    """
    return bilstm(width, depth, dropout)
