"""Scores of coreference, against figures that others have published."""

import pytest

from spacy_elmo.tasks.coref.clusters import METRICS, get_prf

# Pradhan et al. 2014, "Scoring Coreference Partitions of Predicted Mentions", section 4: the
# figures of its example, with two decimals.
PRADHAN = ["abc", "defg"], ["ab", "cd", "fghi"]
PRADHAN_SCORES = {"muc": (0.40, 0.40, 0.40), "b3": (0.42, 0.50, 0.46), "ceafe": (0.65, 0.43, 0.52)}
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


def test_documents_are_added_up():
    one = METRICS["b3"](["ab"], ["ab"])
    other = METRICS["b3"](["cdef"], [])
    assert get_prf([one, other]) == {"p": 1, "r": 2 / 6, "f": 0.5}
