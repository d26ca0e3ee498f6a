"""Descriptions of shapes: strict types, bounded sizes."""

import math
import time

import pytest

from spacy_elmo.bilm.config import RANGES, BiLMConfig
from spacy_elmo.bilm.model import BiLM, encode_distinct
from spacy_elmo.bilm.weights import MOST_WEIGHTS, check_size, get_headers, plan_weights

from ..support.helpers import SHAPE

INTEGERS = [*RANGES, "width of a filter", "number of filters"]
# What JSON and configs have in the place of an integer.
NO_INTEGERS = {
    "text": "4",
    "float": 4.0,
    "null": None,
    "flag": True,
    "list": [4],
    "nan": float("nan"),
}
WRONG = {
    "flag as text": ("skip_connections", "False", "true or false"),
    "flag as number": ("projection", 1, "true or false"),
    "flag null": ("skip_connections", None, "true or false"),
    "clip as text": ("cell_clip", "3", "a number above 0"),
    "clip as flag": ("proj_clip", True, "a number above 0"),
    "clip infinite": ("cell_clip", float("inf"), "a number above 0"),
    "clip nan": ("cell_clip", float("nan"), "a number above 0"),
    "clip huge": ("cell_clip", 10**400, "a number above 0"),
    "activation as list": ("activation", ["relu"], "one of relu, tanh"),
    "activation null": ("activation", None, "one of relu, tanh"),
    "filters as text": ("filters", "11", "pairs"),
    "filters null": ("filters", None, "pairs"),
    "filters as numbers": ("filters", [1, 2], "pairs"),
    "filters as texts": ("filters", ["12"], "pairs"),
    "filters as dicts": ("filters", [{1: 2, 3: 4}], "pairs"),
    "filters of three": ("filters", [[1, 2, 3]], "pairs"),
}


def make_shape(key, value):
    if key in ("width of a filter", "number of filters"):
        pair = [value, 3] if key == "width of a filter" else [1, value]
        return {**SHAPE, "filters": [pair]}
    return {**SHAPE, key: value}


@pytest.mark.parametrize("value", NO_INTEGERS.values(), ids=NO_INTEGERS)
@pytest.mark.parametrize("key", INTEGERS)
def test_only_integers_are_integers(key, value):
    with pytest.raises(ValueError, match=r"EL010.*= .*expected .*integer"):
        BiLMConfig(**make_shape(key, value))


def test_a_text_is_shown_as_one():
    with pytest.raises(ValueError, match=r'EL010.*depth = "4".*an integer from 1 to 100'):
        BiLMConfig(**{**SHAPE, "depth": "4"})


@pytest.mark.parametrize("key, value, expected", WRONG.values(), ids=WRONG)
def test_other_types_are_refused(key, value, expected):
    with pytest.raises(ValueError, match=rf"EL010.*{key} = .*expected {expected}"):
        BiLMConfig(**{**SHAPE, key: value})


def test_an_input_of_another_type_is_refused():
    for value in (None, 1, ["words"]):
        with pytest.raises(ValueError, match="EL011"):
            BiLMConfig(**{**SHAPE, "input": value})


HUGE = {
    "depth": 10**6,
    "cell_width": 10**7,
    "width": 10**7,
    "n_highway": 10**5,
    "max_chars": 10**9,
    "char_width": 10**6,
    "width of a filter": 10**5,
    "number of filters": 10**6,
}


@pytest.mark.parametrize("key, value", HUGE.items(), ids=HUGE)
def test_absurd_sizes_are_refused_at_once(key, value):
    start = time.perf_counter()
    with pytest.raises(ValueError, match=r"EL010.*at most|EL010.*from"):
        BiLMConfig(**make_shape(key, value))
    with pytest.raises(ValueError, match="EL010.*filters"):
        BiLMConfig(**{**SHAPE, "filters": [[1, 1000]] * 10_000})
    assert time.perf_counter() - start < 1


def test_sizes_that_are_too_large_together_are_refused():
    most = {key: RANGES[key][1] for key in ("width", "depth", "cell_width", "n_highway")}
    with pytest.raises(ValueError, match=rf"EL105.*weights.*GB.*{MOST_WEIGHTS}"):
        BiLM(BiLMConfig(**{**SHAPE, **most}))


def test_published_and_larger_shapes_are_possible():
    filters = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
    sizes = {"width": 1024, "cell_width": 4096, "n_highway": 2, "projection": True}
    original = {**sizes, "filters": filters}
    headers = plan_weights(BiLMConfig(**original)).values()
    assert sum(math.prod(header.shape) for header in headers) == pytest.approx(93.6e6, rel=0.01)
    for shape in (
        {**original, "width": 4096, "cell_width": 16384, "depth": 6},
        {**SHAPE, "input": "vectors", "vector_width": 300, "n_words": 2_000_000},
    ):
        check_size(BiLMConfig(**shape))


def test_clips_are_floats():
    """torch takes no integer of more than 64 bits."""
    config = BiLMConfig(**{**SHAPE, "cell_clip": 3, "proj_clip": 10**30})
    assert isinstance(config.cell_clip, float) and config.proj_clip == 1e30
    assert config == BiLMConfig(**config.to_dict())


SHAPES = {
    "characters": {},
    "no projection": {"projection": False, "cell_width": 4, "depth": 3, "n_highway": 0},
    "words": {"input": "words", "n_words": 5},
    "no words": {"input": "words"},
    "vectors": {"input": "vectors", "n_words": 5, "vector_width": 7},
}


@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES)
def test_weights_are_known_without_making_them(changes):
    config = BiLMConfig(**{**SHAPE, **changes})
    state = BiLM(config).state_dict()

    assert plan_weights(config) == get_headers(state)


def test_the_first_words_take_as_much_memory_as_they_are_long(monkeypatch):
    """Not as much as the longest word that could come."""
    bilm = BiLM(BiLMConfig(**{**SHAPE, "max_chars": RANGES["max_chars"][1]}))
    sizes = []
    monkeypatch.setattr(bilm, "encode", lambda part: sizes.append(part.shape) or part[:, :1])

    encode_distinct(bilm, ["ham", "x" * 100, *map(str, range(1500))])

    assert [n_chars <= 104 for _, n_chars in sizes] == [True, True]
    assert sizes[0][1] <= 8
