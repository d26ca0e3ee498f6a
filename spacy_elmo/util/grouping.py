"""What is computed at a time: sequences of about the same length, or items up to a size."""

from typing import Callable, Iterable, Iterator, List, Sequence, TypeVar

Item = TypeVar("Item")


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


def split_by_size(
    items: Iterable[Item], get_size: Callable[[Item], int], most: int
) -> Iterator[List[Item]]:
    """Divide items into batches, so that memory is bounded.

    items (Iterable[Item]): docs, clauses or the like.
    get_size (Callable[[Item], int]): tokens of one.
    most (int): tokens of a batch, unless it is a single item.
    YIELDS (List[Item]): in order.
    """
    batch: List[Item] = []
    n_tokens = 0
    for item in items:
        if batch and n_tokens + get_size(item) > most:
            yield batch
            batch, n_tokens = [], 0
        batch.append(item)
        n_tokens += get_size(item)
    if batch:
        yield batch
