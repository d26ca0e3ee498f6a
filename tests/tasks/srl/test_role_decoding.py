"""The best tags that are BIO, held against trying all of them."""

from itertools import product

import numpy as np
import pytest

from spacy_elmo.tasks.srl.network import Clause
from spacy_elmo.tasks.srl.tags import decode_roles

# Two roles: O, B and I of the predicate, of the first and of the second.
N_TAGS = 7


def is_bio(tags, clause, fixed):
    start, end = (place - clause.start for place in clause.predicate)
    if any(
        tag > 0 and tag % 2 == 0 and before not in (tag, tag - 1)
        for before, tag in zip([0, *tags], tags)
    ):
        return False  # fmt: skip
    if [i for i, tag in enumerate(tags) if tag == 1] != [start]:
        return False
    verb = [i for i, tag in enumerate(tags) if tag in (1, 2)]
    return not fixed or verb == list(range(start, end))


def decode_by_trying(scores, clause, fixed):
    every = (t for t in product(range(N_TAGS), repeat=len(scores)) if is_bio(t, clause, fixed))
    return max(every, key=lambda tags: sum(scores[i, tag] for i, tag in enumerate(tags)))


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize(
    "n_tokens, predicate", [(1, (0, 1)), (4, (1, 3)), (4, (3, 4)), (5, (0, 2))]
)
def test_it_is_the_best_of_all(n_tokens, predicate, fixed):
    rng = np.random.default_rng(n_tokens)
    clauses = [Clause(0, 2, 2 + n_tokens, (predicate[0] + 2, predicate[1] + 2))] * 5
    scores = [3 * rng.standard_normal((n_tokens, N_TAGS)).astype("float32") for _ in clauses]
    decoded = decode_roles(scores, clauses, fixed=fixed)

    for each, clause, tags in zip(scores, clauses, decoded):
        assert tuple(tags) == decode_by_trying(each, clause, fixed)


def test_clauses_of_several_lengths_keep_their_order():
    rng = np.random.default_rng(0)
    clauses = [Clause(0, 0, n, (n - 1, n)) for n in (3, 1, 3, 2)]
    scores = [rng.standard_normal((c.n_tokens, N_TAGS)).astype("float32") for c in clauses]
    together = decode_roles(scores, clauses, fixed=False)

    assert [len(tags) for tags in together] == [3, 1, 3, 2]
    for i in range(len(clauses)):
        assert decode_roles(scores[i : i + 1], clauses[i : i + 1], fixed=False) == [together[i]]
    assert decode_roles([], [], fixed=True) == []
