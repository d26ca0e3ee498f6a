"""What is computed at a time."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.utils import group_by_length, split_by_size


@given(st.lists(st.integers(0, 40)), st.integers(1, 100), st.integers(1, 5))
def test_groups_hold_each_once_and_are_as_large_as_fits(lengths, most, most_sequences):
    def fits(n, longest):
        return n <= most_sequences and n * longest <= most

    groups = list(group_by_length(lengths, fits))
    flat = [i for group in groups for i in group]
    assert flat == sorted(range(len(lengths)), key=lambda i: lengths[i])
    assert all(len(group) == 1 or fits(len(group), lengths[group[-1]]) for group in groups)
    assert not any(fits(len(a) + 1, lengths[b[0]]) for a, b in pairwise(groups))


@given(st.lists(st.integers(0, 9)), st.integers(1, 12))
def test_batches_are_bounded_and_lose_nothing(sizes, most):
    items = list(enumerate(sizes))
    batches = list(split_by_size(items, lambda item: item[1], most))
    totals = [sum(size for _, size in batch) for batch in batches]

    assert [item for batch in batches for item in batch] == items
    assert all(len(b) == 1 or total <= most for b, total in zip(batches, totals, strict=True))
    # None could take the next one's first.
    assert all(total + b[0][1] > most for total, (_, b) in zip(totals, pairwise(batches)))
