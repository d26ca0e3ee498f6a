"""`WordBatch`: sequences of words -> distinct words, word ids, lengths."""

from dataclasses import dataclass
from typing import Dict, Iterator, List, Sequence

import numpy as np
from numpy.typing import NDArray

from .characters import BOS_WORD, EOS_WORD

N_BOUNDARIES = 2


@dataclass(frozen=True)
class WordBatch:
    """Sequences as the biLM reads them, without padding.

    words (List[str]): Distinct words; 0 is the begin, 1 the end of a sequence.
    word_ids (NDArray): Indices into `words`, one sequence after the other, each
        between its two boundaries, shape (sum(lengths),), int64.
    lengths (NDArray): Length of each sequence, boundaries counted, shape (n_seqs,), int64.
    """

    words: List[str]
    word_ids: NDArray
    lengths: NDArray


def make_batch(sequences: Sequence[Sequence[str]]) -> WordBatch:
    """Collect the distinct words of sequences and put boundaries around each.

    sequences (Sequence[Sequence[str]]): Words, at least one in each sequence.
    RETURNS (WordBatch): The sequences in the given order.
    """
    index: Dict[str, int] = {BOS_WORD: 0, EOS_WORD: 1}
    word_ids: List[int] = []
    for words in sequences:
        word_ids.append(0)
        word_ids.extend([index.setdefault(word, len(index)) for word in words])
        word_ids.append(1)
    lengths = [len(words) + N_BOUNDARIES for words in sequences]
    return WordBatch(
        list(index), np.array(word_ids, dtype=np.int64), np.array(lengths, dtype=np.int64)
    )


def plan_batches(
    lengths: Sequence[int], batch_tokens: int, n_boundaries: int = N_BOUNDARIES
) -> Iterator[List[int]]:
    """Group sequences of similar length, longest first, within a budget.

    lengths (Sequence[int]): Words of each sequence; empty ones are left out.
    batch_tokens (int): Tokens of a group, boundaries counted; at least 1. A longer
        sequence is a group of its own.
    n_boundaries (int): Boundaries of a sequence that count.
    YIELDS (List[int]): Indices of the sequences of one group.
    """
    group: List[int] = []
    n_tokens = 0
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if lengths[i] == 0:
            break
        size = lengths[i] + n_boundaries
        if group and n_tokens + size > batch_tokens:
            yield group
            group, n_tokens = [], 0
        group.append(i)
        n_tokens += size
    if group:
        yield group
