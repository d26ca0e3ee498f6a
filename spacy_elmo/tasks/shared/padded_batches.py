"""Sequences in groups that are padded together."""

from typing import Iterator, List, Sequence

from ...utils import group_by_length

# Padded tokens that a task's network reads at a time: what attention and encoders need for them
# stays below some 100 MB, however many texts come at once and however long one of them is.
MOST_PADDED = 8192


def plan_padded(lengths: Sequence[int]) -> Iterator[List[int]]:
    """Group sequences so that each group, padded to its longest one, is within `MOST_PADDED`.

    lengths (Sequence[int]): tokens of each sequence; empty ones are left out.
    YIELDS (List[int]): indices of the sequences of one group: all of them in order if they fit,
        otherwise those of about the same length together, the shortest first. A sequence that
        is too long is a group of its own.
    """
    found = [i for i, length in enumerate(lengths) if length]
    if _fits(len(found), max(lengths, default=0)):
        if found:
            yield found
        return
    for group in group_by_length([lengths[i] for i in found], _fits):
        yield [found[k] for k in group]


def _fits(n: int, longest: int) -> bool:
    return n * longest <= MOST_PADDED
