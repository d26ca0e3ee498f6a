"""BiDAF against its formulas, and the probabilities of spans."""

import itertools
from functools import partial

import numpy as np
import pytest
import torch

from spacy_elmo.tasks.qa.network import BiDAF, get_gradient, make_table, rank_spans

from ..support.helpers import assert_gradient
from ..support.toy_tasks import encode_skip

WINDOWS = [(2, 7), (5, 10), (8, 11)]
MOST = 3


def encode(layer, X):
    return layer.layers[0](X)[0]


def similarity(layer, A, B):
    rows = [[a @ layer.of_a.weight[0] + b @ layer.of_b.weight[0] for b in B] for a in A]
    both = [[(a * layer.of_both) @ b for b in B] for a in A]
    return torch.tensor(rows) + torch.tensor(both) + layer.of_a.bias


def oracle(module, Q, C, matches=()):
    """One question and its context, without padding (Seo et al. 2017, 2.4; Clark & Gardner 2018,
    3.1 and 4.1). matches: of the question's tokens, then of the context's, 0 or 1."""
    more = []
    if module.match is not None:
        M = module.match.weight[list(matches)]
        Q, C = torch.cat([M[: len(Q)], Q], 1), torch.cat([M[len(Q) :], C], 1)
        more = [M[-len(C) :]]
    Q, C = encode_skip(module.encode, Q), encode_skip(module.encode, C)
    S = similarity(module.attend.similarity, C, Q)
    of_q = torch.softmax(S, 1) @ Q
    of_c = torch.softmax(S.max(1).values, 0) @ C
    X = torch.relu(module.attend.merge(torch.cat([C, of_q, C * of_q, C * of_c, *more], 1)))
    if module.attend_self is not None:
        H = encode(module.attend_self.encode, X)
        S = similarity(module.attend_self.similarity, H, H)
        S.fill_diagonal_(-torch.inf)
        read = torch.softmax(S, 1) @ H if len(C) > 1 else torch.zeros_like(H)
        X = X + torch.relu(module.attend_self.merge(torch.cat([H, read, H * read], 1)))
    H = encode(module.read_start, X)
    E = encode(module.read_end, torch.cat([X, H], 1))
    start, end = module.start(H), module.end(E)
    pooled = [torch.softmax(s, 0).T @ R for s, R in ((start, H), (end, E), (module.weigh(X), X))]
    return torch.cat([start, end], 1), module.none(torch.cat(pooled, 1)).item()


@pytest.mark.parametrize("skip_width", [0, 2])
@pytest.mark.parametrize("word_match", [True, False])
@pytest.mark.parametrize("self_attention", [True, False])
def test_the_network_is_that_of_the_papers(self_attention, word_match, skip_width):
    torch.manual_seed(0)
    module = BiDAF(5, skip_width, width=6, self_attention=self_attention, word_match=word_match)
    pairs = [(2, 4), (3, 1), (1, 7)]
    questions, contexts = ([torch.randn(p[i], 5) for p in pairs] for i in (0, 1))
    asked, read = [[1, 0], [0, 0, 0], [1]], [[0, 1, 1, 0], [0], [1, 0, 0, 0, 1, 0, 1]]
    matches = [bool(match) for group in (asked, read) for own in group for match in own]
    with torch.no_grad():
        together = module(torch.cat([*questions, *contexts]), [2, 3, 1, 4, 1, 7], matches)
        expected = [
            oracle(module, q, c, [*a, *r]) for q, c, a, r in zip(questions, contexts, asked, read)
        ]

    np.testing.assert_allclose(together[:-3], torch.cat([e[0] for e in expected]), atol=1e-5)
    np.testing.assert_allclose(together[-3:, 0], [e[1] for e in expected], atol=1e-5)
    assert not together[-3:, 1].any()


@pytest.mark.parametrize("self_attention, word_match", [(1, 0), (0, 0), (1, 1)])
def test_gradients_are_those_of_finite_differences(self_attention, word_match):
    torch.manual_seed(0)
    module = BiDAF(3, 1, width=4, self_attention=self_attention, word_match=word_match).double()
    X = torch.randn(9, 3, dtype=torch.double, requires_grad=True)
    matches = [i % 2 == 0 for i in range(9)]
    assert torch.autograd.gradcheck(lambda X: module(X, [2, 1, 4, 2], matches), X)


# ---- probabilities of spans


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(end - start + 1, 2)) for start, end in WINDOWS]


@pytest.fixture
def is_word():
    return np.arange(12) != 6


def enumerate_spans(rows, is_word):
    """The exponential of each span's score, summed over windows; and that of no answer."""
    masses = {}
    for (first, last), array in zip(WINDOWS, rows):
        for start, end in itertools.product(range(first, last), repeat=2):
            if start <= end < start + MOST and is_word[start] and is_word[end]:
                score = array[start - first, 0] + array[end - first, 1]
                masses[start, end + 1] = masses.get((start, end + 1), 0) + np.exp(score)
    return masses, np.exp(min(array[-1, 0] for array in rows))


def test_probabilities_are_normalised_over_windows(rows, is_word):
    table = make_table(WINDOWS, rows, is_word, MOST)
    masses, none = enumerate_spans(rows, is_word)
    total = sum(masses.values()) + none

    ranked = rank_spans(table, 100)
    assert {r[:2] for r in ranked} == {*masses}
    for start, end, probability in ranked:
        assert probability == pytest.approx(masses[start, end] / total)
    assert np.exp(table.none - table.total) == pytest.approx(none / total)
    assert rank_spans(table, 2) == ranked[:2]
    assert [r.probability for r in ranked] == sorted((r.probability for r in ranked), reverse=True)


def compute_loss(rows, is_word, gold):
    masses, none = enumerate_spans(rows, is_word)
    right = sum(masses.get(place, 0) for place in gold) if gold else none
    return -np.log(right / (sum(masses.values()) + none))


@pytest.mark.parametrize("gold", [[], [(5, 6)], [(3, 4), (8, 10), (9, 10)], [(2, 5), (0, 30)]])
def test_the_loss_is_the_marginal_likelihood_with_its_gradient(rows, is_word, gold):
    table = make_table(WINDOWS, rows, is_word, MOST)
    loss, gradient = get_gradient(table, gold)

    assert loss == pytest.approx(compute_loss(rows, is_word, gold))
    compute = partial(compute_loss, rows, is_word, gold)
    assert_gradient(compute, rows, gradient, eps=1e-5, atol=1e-6)


def test_windows_may_be_of_spaces_alone(rows):
    table = make_table(WINDOWS, rows, np.zeros(12, dtype=bool), MOST)
    assert rank_spans(table, 5) == [] and np.exp(table.none - table.total) == pytest.approx(1)
    loss, gradient = get_gradient(table, [])
    assert loss == pytest.approx(0) and all(np.isfinite(each).all() for each in gradient)
