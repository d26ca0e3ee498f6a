"""Bidirectional LSTMs over sequences of any lengths, and the architecture `BiLSTMEncoder.v1`.

Sequences of similar lengths run side by side, padded: on a CPU forward and backward take 0.3 to 0.6
of the time of packed sequences. A row does not depend on the other sequences of the batch.
"""

from functools import partial
from typing import Callable, Iterable, List, NamedTuple, Tuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor, nn

from ...utils import require_least, require_valid
from .torch_layer import Dropout, drop, run_rows, torch_layer

EncoderModel = Model[List[Floats2d], List[Floats2d]]
# A padded sequence has at least this share of the length of its group's longest.
_LEAST_SHARE, _LEAST_SHARE_GPU = 0.6, 0.25


def build_bilstm_encoder_v1(width: int, depth: int = 1, dropout: float = 0.0) -> EncoderModel:
    """Encode token vectors by a bidirectional LSTM. Unlike spacy.TorchBiLSTMEncoder.v1, a doc's
    vectors do not depend on the longer docs of its batch, the input may have any width, averaged
    weights are used in evaluation, and nothing is saved as pickle.

    width (int): of the output, half for each direction; even.
    depth (int): layers, at least 1.
    dropout (float): probability in [0, 1) that a number of a layer's output is dropped in
        training. Not driven by [training] dropout.
    RETURNS (EncoderModel): for `encode` of spacy-elmo.ElmoTok2Vec.v2 or spacy.Tok2Vec.v2.
    RAISES (ValueError): EL012 for an odd width, a `dropout` out of range, or no layers.
    """
    require_least("depth", depth, 1)
    require_even("width", width)
    build = partial(BiLSTM, nO=width, depth=depth)
    attrs = {"dropout": Dropout(dropout)}
    return torch_layer("bilstm", bilstm_forward, build, nO=width, attrs=attrs)


def bilstm_forward(
    model: EncoderModel, Xs: List[Floats2d], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    """Shapes (n_tokens, nI) -> (n_tokens, nO) for each doc; any may be empty."""
    lengths = model.ops.asarray1i([len(X) for X in Xs])
    if not any(len(X) for X in Xs):
        return [model.ops.alloc2f(0, model.get_dim("nO")) for _ in Xs], lambda _: Xs
    Y, backprop_rows = run_rows(model, Xs, is_train)

    def backprop(dYs: List[Floats2d]) -> List[Floats2d]:
        return backprop_rows(model.ops.xp.concatenate(dYs))

    return model.ops.unflatten(cast(Floats2d, Y), lengths), backprop


def require_even(key: str, value: int) -> None:
    """Raise EL012 unless two directions can share a width."""
    expected = "an even number, at least 2: each direction of the LSTM has half of it"
    require_valid(value >= 2 and value % 2 == 0, key, value, expected)


class BiLSTM(nn.Module):
    """nI, nO (int): widths of input and output, half for each direction. depth (int): layers."""

    def __init__(self, nI: int, nO: int, depth: int = 1) -> None:
        super().__init__()
        widths = [nI] + [nO] * (depth - 1)
        self.layers = nn.ModuleList(nn.LSTM(w, nO // 2, bidirectional=True) for w in widths)
        self.nO = nO

    def forward(self, X: Tensor, lengths: List[int], dropout: float = 0.0) -> Tensor:
        """Shape (n_tokens, nI) -> (n_tokens, nO), for sequences of lengths of which any may be 0.
        dropout (float): of each layer's output."""
        kept = [length for length in lengths if length]
        if not kept:
            return X.new_zeros(0, self.nO)
        forward, backward = order_sequences(kept, X.device)
        for layer in cast(Iterable[nn.LSTM], self.layers):
            ahead = run_lstm(layer, X, forward)  # (n_tokens, nO // 2)
            back = run_lstm(layer, X, backward, reverse=True)
            X = drop(torch.cat([ahead, back], dim=1), dropout)  # (n_tokens, nO)
        return X


class SkipEncoder(nn.Module):
    """A bidirectional LSTM; the last `skip_width` numbers of its input skip it and are appended to
    its output (Peters et al. 2018, table 3: ELMo at the output)."""

    def __init__(self, nI: int, skip_width: int, nO: int) -> None:
        super().__init__()
        self.lstm = BiLSTM(nI - skip_width, nO)
        self.skip_width = skip_width

    def forward(self, X: Tensor, lengths: List[int]) -> Tensor:
        """X (Tensor): shape (n_tokens, nI). RETURNS (Tensor): (n_tokens, nO + skip_width)."""
        if not self.skip_width:
            return self.lstm(X, lengths)
        read, skipped = X.split([X.shape[1] - self.skip_width, self.skip_width], dim=1)
        return torch.cat([self.lstm(read, lengths), skipped], dim=1)


class ReadOrder(NamedTuple):
    """The order in which one direction reads the rows of sequences."""

    # Of each group, shape (n_steps, n_sequences); an ended sequence reads its last row again.
    rows: List[Tensor]
    # Of each row in the concatenated outputs, shape (n_rows,).
    places: Tensor


def order_sequences(lengths: List[int], device: torch.device) -> Tuple[ReadOrder, ReadOrder]:
    """Group sequences of similar lengths, each of at least 1 row, for both directions."""
    # On a GPU the steps take the same time for any number of sequences.
    least_share = _LEAST_SHARE if device.type == "cpu" else _LEAST_SHARE_GPU
    sizes = np.array(lengths)
    starts = np.cumsum(sizes) - sizes
    by_length = np.argsort(-sizes, kind="stable")
    cuts, longest = [], sizes[by_length[0]]
    for i, size in enumerate(sizes[by_length].tolist()):
        if size < least_share * longest:
            cuts.append(i)
            longest = size
    directions: Tuple[List[NDArray], List[NDArray]] = ([], [])
    for group in np.split(by_length, cuts):
        steps = np.arange(sizes[group[0]])[:, None]
        steps = np.minimum(steps, sizes[group] - 1)  # (n_steps, n_sequences)
        directions[0].append(starts[group] + steps)
        directions[1].append(starts[group] + sizes[group] - 1 - steps)
    return _make_reading(directions[0], device), _make_reading(directions[1], device)


def _make_reading(groups: List[NDArray], device: torch.device) -> ReadOrder:
    read = np.concatenate([rows.ravel() for rows in groups])
    # The first place that reads a row: those after it are padding.
    places = np.unique(read, return_index=True)[1]
    rows = [torch.from_numpy(rows.astype("int64")).to(device) for rows in groups]
    return ReadOrder(rows, torch.from_numpy(places.astype("int64")).to(device))


def run_lstm(lstm: nn.LSTM, X: Tensor, order: ReadOrder, *, reverse: bool = False) -> Tensor:
    """Run one direction of a layer, shape (n_rows, nI) -> (n_rows, nO), by torch's operator: the
    mode of the module is shared by threads. reverse (bool): use the weights of the second
    direction."""
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    weights = [getattr(lstm, f"{name}_reverse" if reverse else name) for name in names]
    is_train, Ys = torch.is_grad_enabled(), []
    for rows in order.rows:
        read = X.index_select(0, rows.flatten()).view(*rows.shape, -1)
        state = X.new_zeros(1, rows.shape[1], lstm.hidden_size)
        Y = torch.lstm(read, (state, state), weights, True, 1, 0.0, is_train, False, False)[0]
        Ys.append(Y.flatten(0, 1))
    return torch.cat(Ys).index_select(0, order.places)
