"""Sequences of about the same length together, so that little is padded."""

from typing import Callable, Iterator, List, Sequence


def group_by_length(
    lengths: Sequence[int], fits: Callable[[int, int], bool]
) -> Iterator[List[int]]:
    """Group sequences that are padded to the longest of their group.

    lengths (Sequence[int]): of the sequences.
    fits (Callable[[int, int], bool]): whether so many sequences, padded to such a length, are
        within bounds. A sequence that is too long is a group of its own.
    YIELDS (List[int]): indices of the sequences of one group, the shortest first.
    """
    group: List[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if group and not fits(len(group) + 1, lengths[i]):
            yield group
            group = []
        group.append(i)
    if group:
        yield group
