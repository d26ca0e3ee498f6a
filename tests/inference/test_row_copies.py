"""Rows of a matrix by their numbers."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.inference.word_cache import clear_other_rows


@given(st.lists(st.booleans(), max_size=20), st.integers(0, 20))
def test_the_other_rows_become_zeros(kept, cut):
    X = torch.full((len(kept), 2, 3), float("nan"))
    rows = np.flatnonzero(kept)
    # Some as an array, the others as a list, which may be empty.
    clear_other_rows(X, [rows[:cut], rows[cut:].tolist()])

    assert X.isnan().all(dim=(1, 2)).tolist() == kept
    assert not X[~torch.tensor(kept, dtype=torch.bool)].any()
