"""Scores of coreference, against figures that others have published."""

import itertools
import random

import pytest

from spacy_elmo.tasks.coref.clusters import (
    METRICS,
    compute_ceafe,
    compute_mentions,
    get_prf,
)

# Pradhan et al. 2014, "Scoring Coreference Partitions of Predicted Mentions", section 4: the
# figures of its example, with two decimals.
PRADHAN = ["abc", "defg"], ["ab", "cd", "fghi"]
PRADHAN_SCORES = {
    "muc": (0.40, 0.40, 0.40),
    "b3": (0.42, 0.50, 0.46),
    "ceafe": (0.65, 0.43, 0.52),
}
# Test cases of the reference scorer, TC-A-1 to TC-A-3: recall, precision.
TC_A = ["a", "bc", "def"]
TC_A_CASES = [
    (["a", "bc", "def"], {"muc": (1, 1), "b3": (1, 1), "ceafe": (1, 1)}),
    (["a", "de"], {"muc": (1 / 3, 1), "b3": (7 / 3 / 6, 1), "ceafe": (0.6, 0.9)}),
    (
        ["a", "bcx", "defy", "z"],
        {"muc": (1, 3 / 5), "b3": (1, (4 + 7 / 12) / 9), "ceafe": (0.88571, 0.66429)},
    ),
]
# Luo 2005, "On Coreference Resolution Performance Metrics", table 1: F of four systems.
LUO = ["12345", "67", "89ABC"]
LUO_CASES = [
    (["12345", "6789ABC"], {"muc": 0.947, "b3": 0.865, "ceafe": 0.733}),
    (["1234589ABC", "67"], {"muc": 0.947, "b3": 0.737, "ceafe": 0.667}),
    (["123456789ABC"], {"muc": 0.900, "b3": 0.545, "ceafe": 0.294}),
    (list("123456789ABC"), {"muc": 0, "b3": 0.400, "ceafe": 0.178}),
]


def score(name, gold, predicted):
    return get_prf([METRICS[name](gold, predicted)])


@pytest.mark.parametrize("name", METRICS)
def test_scores_are_those_of_the_published_example(name):
    found = score(name, *PRADHAN)
    assert (found["r"], found["p"]) == pytest.approx(PRADHAN_SCORES[name][:2], abs=0.005)
    # The paper's F are of the rounded figures.
    assert found["f"] == pytest.approx(PRADHAN_SCORES[name][2], abs=0.01)


@pytest.mark.parametrize("predicted, expected", TC_A_CASES)
@pytest.mark.parametrize("name", METRICS)
def test_scores_are_those_of_the_reference_scorer(name, predicted, expected):
    found = score(name, TC_A, predicted)
    assert (found["r"], found["p"]) == pytest.approx(expected[name], abs=1e-5)


@pytest.mark.parametrize("predicted, expected", LUO_CASES)
@pytest.mark.parametrize("name", METRICS)
def test_scores_are_those_of_luo(name, predicted, expected):
    assert score(name, LUO, predicted)["f"] == pytest.approx(expected[name], abs=0.0006)


def make_partition(rng, mentions):
    clusters = [[] for _ in range(rng.randrange(1, 6))]
    for mention in mentions:
        rng.choice(clusters).append(mention)
    return [cluster for cluster in clusters if cluster]


@pytest.fixture(params=range(20))
def pair(request):
    """Two partitions, of which each has mentions that the other has not."""
    rng = random.Random(request.param)
    return make_partition(rng, range(14)), make_partition(rng, range(3, 17))


@pytest.mark.parametrize("name", METRICS)
def test_scores_have_their_properties(name, pair):
    gold, predicted = pair
    one, other = score(name, gold, predicted), score(name, predicted, gold)
    assert (one["p"], one["r"]) == pytest.approx((other["r"], other["p"]))
    assert min(one.values()) >= 0 and max(one.values()) <= 1
    assert score(name, gold, gold)["f"] == pytest.approx(1)
    shuffled = [cluster[::-1] for cluster in predicted[::-1]]
    assert score(name, gold, shuffled) == pytest.approx(one)
    assert score(name, gold, [["x", "y"]])["f"] == 0


def test_the_alignment_is_the_best(pair):
    gold, predicted = pair
    small, large = sorted((gold, predicted), key=len)

    def phi(one, other):
        return 2 * len({*one} & {*other}) / (len(one) + len(other))

    best = max(sum(map(phi, small, chosen)) for chosen in itertools.permutations(large, len(small)))
    assert compute_ceafe(gold, predicted)[0] == pytest.approx(best)


def test_documents_are_added_up():
    one = METRICS["b3"](["ab"], ["ab"])
    other = METRICS["b3"](["cdef"], [])
    assert get_prf([one, other]) == {"p": 1, "r": 2 / 6, "f": 0.5}


def test_mentions_are_counted_without_clusters():
    assert get_prf([compute_mentions(["ab", "c"], ["bc", "x", "y"])]) == {
        "p": 0.5,
        "r": pytest.approx(2 / 3),
        "f": pytest.approx(4 / 7),
    }
