"""`LMBatch`: inputs and targets of both directions."""

from dataclasses import dataclass
from typing import Dict, Iterator, List, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from ..bilm.batch import make_batch, pack
from .vocabulary import Vocabulary


@dataclass(frozen=True)
class Reading:
    """One direction of a batch: the rows of step 0, then those of step 1, and so on.

    inputs (NDArray): indices of distinct words, shape (sum(batch_sizes),), int64.
    targets (NDArray): rows of the softmax, the same shape: what comes next.
    """

    inputs: NDArray
    targets: NDArray


@dataclass(frozen=True)
class LMBatch:
    """Distinct words, and the readings of both directions, which have the same number of rows at
    each step, never growing. The forward one reads the begin of each sequence first and predicts
    its end last; the backward one the reverse."""

    words: List[str]
    batch_sizes: List[int]
    forward: Reading
    backward: Reading

    @property
    def n_targets(self) -> int:
        """Predictions of one direction: tokens, and a boundary for each sequence."""
        return len(self.forward.targets)


def make_lm_batch(sequences: Sequence[Sequence[str]], vocabulary: Vocabulary) -> LMBatch:
    """Make a batch of sequences, at least one word in each, that each start from a zero state.

    Source: Peters et al. 2018, section 3.1. The last boundary is predicted, not read.
    """
    batch = make_batch(sequences)
    packing = pack(batch.lengths, read_last=False)
    ids = batch.word_ids
    targets = vocabulary.encode(batch.words)[ids]
    return LMBatch(
        batch.words,
        packing.batch_sizes,
        Reading(ids[packing.forward], targets[packing.forward + 1]),
        Reading(ids[packing.backward], targets[packing.backward - 1]),
    )


def make_stream_batches(
    rows: Sequence[Sequence[Sequence[str]]],
    n_steps: int,
    length: int,
    vocabulary: Vocabulary,
    skip: int = 0,
) -> Iterator[LMBatch]:
    """Make batches that each start from the state after the previous batch. The backward direction
    reads the sequences of a row in reverse order, so that its state comes from the text that
    follows. A batch has `n_steps` steps, the last one fewer; `length` is that of all batches;
    `skip` batches are left out at the start."""
    forward = [_stream(row, vocabulary, reverse=False) for row in rows]
    backward = [_stream(row, vocabulary, reverse=True) for row in rows]
    for start in range(skip * n_steps, length, n_steps):
        end = min(start + n_steps, length)
        # A row's words stand in a line; time has to run outermost.
        steps = range(start, end)
        read = [words[t] for streams in (forward, backward) for t in steps for words, _ in streams]
        index: Dict[str, int] = {}
        ids = np.array([index.setdefault(word, len(index)) for word in read], dtype=np.int64)
        f_ids, b_ids = np.split(ids, 2)
        yield LMBatch(
            list(index),
            [len(rows)] * len(steps),
            Reading(f_ids, _targets(forward, start, end)),
            Reading(b_ids, _targets(backward, start, end)),
        )


def _stream(
    sequences: Sequence[Sequence[str]], vocabulary: Vocabulary, *, reverse: bool
) -> Tuple[List[str], NDArray]:
    """Inputs and targets of one direction of a row, word by word."""
    first, last = vocabulary.words[:2]
    words: List[str] = []
    targets: List[str] = []
    for sequence in reversed(sequences) if reverse else sequences:
        line = [first, *sequence, last]
        if reverse:
            line.reverse()
        words += line[:-1]
        targets += line[1:]
    return words, vocabulary.encode(targets)


def _targets(streams: Sequence[Tuple[List[str], NDArray]], start: int, end: int) -> NDArray:
    return np.stack([targets[start:end] for _, targets in streams], axis=1).reshape(-1)
