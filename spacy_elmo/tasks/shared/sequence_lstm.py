"""`run_lstm`: one direction of torch's LSTM over sequences of any lengths.

Where oneDNN's LSTM is at hand (float32 on a CPU), sequences of similar lengths run side by side,
padded: forward and back in 0.3 to 0.6 of the time that packed sequences take, whose steps torch
makes one by one (`benchmarks/task_lstm.py`). Elsewhere they are packed. What a row becomes does
not depend on the other sequences in either way.
"""

from typing import List, NamedTuple, Optional, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...bilm.batch import pack

# A sequence that is padded has at least this share of the length of its group's longest.
_LEAST_SHARE = 0.6


class ReadOrder(NamedTuple):
    """What one direction reads, in which order.

    rows (List[Tensor]): of each group the rows that it reads, shape (n_steps, n_sequences), or
        (n_rows,) if packed. A sequence that has ended reads its last row again.
    places (Tensor): shape (n_rows,), where among the groups' outputs, put end to end, a row's is.
    """

    rows: List[Tensor]
    places: Tensor


class Order(NamedTuple):
    """How sequences are read. forward, backward (ReadOrder): by each direction. batch_sizes
    (Optional[Tensor]): if packed, shape (most_steps,), sequences that have a first, second, ...
    row."""

    forward: ReadOrder
    backward: ReadOrder
    batch_sizes: Optional[Tensor]


def order_sequences(lengths: List[int], X: Tensor) -> Order:
    """lengths (List[int]): rows of the sequences, each at least 1. X (Tensor): of the type, and on
    the device, of what they are. RETURNS (Order): of them."""
    is_padded = X.device.type == "cpu" and X.dtype == torch.float32
    is_padded = is_padded and torch.backends.mkldnn.is_available()
    return (pad_sequences if is_padded else pack_sequences)(lengths, X.device)


def pad_sequences(lengths: List[int], device: torch.device) -> Order:
    """As `order_sequences`, in groups of similar lengths."""
    sizes = np.array(lengths)
    starts = np.cumsum(sizes) - sizes
    by_length = np.argsort(-sizes, kind="stable")
    groups = np.split(by_length, _find_cuts(sizes[by_length]))
    directions: Tuple[List[NDArray], List[NDArray]] = ([], [])
    for group in groups:
        steps = np.arange(sizes[group[0]])[:, None]
        steps = np.minimum(steps, sizes[group] - 1)  # (n_steps, n_sequences)
        directions[0].append(starts[group] + steps)
        directions[1].append(starts[group] + sizes[group] - 1 - steps)
    forward, backward = (_make_reading(rows, device) for rows in directions)
    return Order(forward, backward, None)


def pack_sequences(lengths: List[int], device: torch.device) -> Order:
    """As `order_sequences`: first rows of all sequences, longest sequence first, then second
    rows."""
    packing = pack(np.array(lengths), read_last=True)
    forward, backward = (
        _make_reading([rows], device) for rows in (packing.forward, packing.backward)
    )
    # torch wants these on the CPU.
    return Order(forward, backward, torch.tensor(packing.batch_sizes, device="cpu"))


def run_lstm(lstm: nn.LSTM, X: Tensor, order: Order, *, backward: bool) -> Tensor:
    """Run one direction of a layer.

    lstm (nn.LSTM): has its weights, perhaps of both directions. The operator is called, not the
        module, whose mode is shared by threads.
    X (Tensor): shape (n_rows, nI), sequence after sequence.
    order (Order): of the sequences.
    backward (bool): whether they are read from their ends.
    RETURNS (Tensor): shape (n_rows, nO), in the order of X.
    """
    suffix = "_reverse" if backward and lstm.bidirectional else ""
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    weights = [getattr(lstm, name + suffix) for name in names]
    reading = order.backward if backward else order.forward
    is_train, Ys = torch.is_grad_enabled(), []
    for rows in reading.rows:
        read = X.index_select(0, rows.flatten())
        if order.batch_sizes is None:
            read = read.view(*rows.shape, -1)  # (n_steps, n_sequences, nI)
            state = X.new_zeros(1, rows.shape[1], lstm.hidden_size)
            Y = torch.lstm(read, (state, state), weights, True, 1, 0.0, is_train, False, False)[0]
        else:
            state = X.new_zeros(1, int(order.batch_sizes[0]), lstm.hidden_size)
            Y = torch.lstm(
                read, order.batch_sizes, (state, state), weights, True, 1, 0.0, is_train, False
            )[0]
        Ys.append(Y.flatten(0, -2))
    return torch.cat(Ys).index_select(0, reading.places)


def _find_cuts(sizes: NDArray) -> List[int]:
    """sizes (NDArray): shape (n_sequences,), longest first. RETURNS (List[int]): where a group
    begins, but for the first."""
    cuts, longest = [], sizes[0]
    for i, size in enumerate(sizes.tolist()):
        if size < _LEAST_SHARE * longest:
            cuts.append(i)
            longest = size
    return cuts


def _make_reading(groups: List[NDArray], device: torch.device) -> ReadOrder:
    """groups (List[NDArray]): rows that are read, in the order of `ReadOrder.rows`."""
    read = np.concatenate([rows.ravel() for rows in groups])
    # The first of the places that read a row: those after it are padding.
    places = np.unique(read, return_index=True)[1]
    rows = [torch.from_numpy(rows.astype("int64")).to(device) for rows in groups]
    return ReadOrder(rows, torch.from_numpy(places.astype("int64")).to(device))
