"""`Packing`: where each token of a batch stands when time runs outermost."""

from dataclasses import dataclass
from typing import List

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Packing:
    """Order the steps of sequences by time, longest sequence first, so that the rows
    still running at a step are one block that shrinks: no padded work.

    order (NDArray): Sequences from the longest to the shortest, shape (n_seqs,).
    batch_sizes (List[int]): Sequences that run at each step, never growing.
    forward (NDArray): Flat position read at each packed row by the forward
        direction, shape (sum(batch_sizes),).
    backward (NDArray): The same for the backward direction, which reads each
        sequence from its own end.
    """

    order: NDArray
    batch_sizes: List[int]
    forward: NDArray
    backward: NDArray


def pack(lengths: NDArray, *, read_last: bool) -> Packing:
    """Lay out sequences that stand one after the other in a flat array.

    lengths (NDArray): Length of each sequence, boundaries counted, shape (n_seqs,).
    read_last (bool): Whether a direction also reads its last boundary. Only the
        state after it depends on it, no token does.
    RETURNS (Packing): The layout.
    """
    starts = np.cumsum(lengths) - lengths
    order = np.argsort(-lengths, kind="stable")
    starts, ends = starts[order], (starts + lengths)[order] - 1
    n_steps = lengths[order] - (0 if read_last else 1)  # (n_seqs,), never growing
    # Sequences that are at least so long, for 1, 2, ...
    sizes = len(n_steps) - np.searchsorted(n_steps[::-1], np.arange(n_steps[0]), side="right")
    steps = np.repeat(np.arange(n_steps[0]), sizes)  # (n_rows,)
    ranks = np.arange(len(steps)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return Packing(
        order=order,
        batch_sizes=sizes.tolist(),
        forward=starts[ranks] + steps,
        backward=ends[ranks] - steps,
    )


def unpack_rows(packed: NDArray, positions: NDArray) -> NDArray:
    """Find the packed row of each flat position.

    packed (NDArray): `Packing.forward` or `Packing.backward`.
    positions (NDArray): Flat positions, each one present in `packed`.
    RETURNS (NDArray): Rows, in the shape of `positions`.
    """
    rows = np.empty(int(packed.max()) + 1, dtype=np.int64)
    rows[packed] = np.arange(len(packed))
    return rows[positions]
