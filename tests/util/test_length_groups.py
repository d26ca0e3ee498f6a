"""Sequences of about the same length together."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.util.length_groups import group_by_length


@given(st.lists(st.integers(0, 40)), st.integers(1, 100), st.integers(1, 5))
def test_groups_hold_each_once_and_are_as_large_as_fits(lengths, most, most_sequences):
    def fits(n, longest):
        return n <= most_sequences and n * longest <= most

    groups = list(group_by_length(lengths, fits))
    flat = [i for group in groups for i in group]
    assert flat == sorted(range(len(lengths)), key=lambda i: lengths[i])
    assert all(len(group) == 1 or fits(len(group), lengths[group[-1]]) for group in groups)
    assert not any(fits(len(a) + 1, lengths[b[0]]) for a, b in pairwise(groups))
