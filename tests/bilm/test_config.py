"""Descriptions of shapes: strict types, bounded sizes."""

import math

import pytest

from spacy_elmo.bilm.config import MOST_WEIGHTS, RANGES, BiLMConfig

from ..support.helpers import SHAPE

WRONG = {
    "input as number": ("input", 1, "one of characters"),
    "another input": ("input", "subwords", "one of characters"),
    "integer as text": ("depth", "4", "an integer from 1 to 100"),
    "integer as float": ("width", 4.0, "an integer"),
    "integer null": ("max_chars", None, "an integer"),
    "integer as flag": ("n_words", True, "an integer"),
    "too small": ("max_chars", 2, "an integer from 3"),
    "too large": ("cell_width", 10**7, "an integer from"),
    "odd width": ("width", 7, "an even number"),
    "flag as text": ("skip_connections", "False", "true or false"),
    "flag as number": ("projection", 1, "true or false"),
    "clip as text": ("cell_clip", "3", "a number above 0"),
    "clip as flag": ("proj_clip", True, "a number above 0"),
    "clip 0": ("cell_clip", 0.0, "a number above 0"),
    "clip nan": ("cell_clip", float("nan"), "a number above 0"),
    "clip huge": ("cell_clip", 10**400, "a number above 0"),
    "another activation": ("activation", "gelu", "one of relu, tanh"),
    "activation as list": ("activation", ["relu"], "one of relu, tanh"),
    "no filters": ("filters", [], "pairs"),
    "filters as text": ("filters", "11", "pairs"),
    "filters as numbers": ("filters", [1, 2], "pairs"),
    "filters of three": ("filters", [[1, 2, 3]], "pairs"),
    "filter of no width": ("filters", [[0, 3]], "pairs"),
    "filter number as text": ("filters", [[1, "3"]], "pairs"),
    "too many filters": ("filters", [[1, 1000]] * 10_000, "pairs"),
    "filter wider than a word": ("filters", [[60, 1]], "at least 60"),
    "words with characters": ("n_words", 1, "0 with characters"),
    "vectors with characters": ("vector_width", 1, "the width of the given vectors"),
}


@pytest.mark.parametrize("key, value, expected", WRONG.values(), ids=WRONG)
def test_other_values_are_refused(key, value, expected):
    shown = "max_chars" if expected == "at least 60" else key
    with pytest.raises(ValueError, match=rf"EL010.*{shown} = .*expected {expected}"):
        BiLMConfig(**{**SHAPE, key: value})


def test_a_cell_without_projection_has_the_width_of_a_direction():
    with pytest.raises(ValueError, match="EL010.*cell_width = 6.*width // 2 = 4"):
        BiLMConfig(**{**SHAPE, "projection": False})


def test_sizes_that_are_too_large_together_are_refused():
    most = {key: RANGES[key][1] for key in ("width", "depth", "cell_width", "n_highway")}
    with pytest.raises(ValueError, match=rf"EL010.*at most {MOST_WEIGHTS} weights"):
        BiLMConfig(**{**SHAPE, **most})


def test_published_and_larger_shapes_are_possible():
    filters = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
    sizes = {"width": 1024, "cell_width": 4096, "n_highway": 2, "projection": True}
    original = BiLMConfig(**sizes, filters=filters)

    assert original.n_weights == pytest.approx(93.6e6, rel=0.01)
    BiLMConfig(**{**sizes, "width": 4096, "cell_width": 16384, "depth": 6}, filters=filters)
    BiLMConfig(**SHAPE, input="vectors", vector_width=300, n_words=2_000_000)


def test_a_config_survives_json_and_names_differences():
    config = BiLMConfig(**{**SHAPE, "cell_clip": 3, "proj_clip": 10**30})

    assert isinstance(config.cell_clip, float) and math.isclose(config.proj_clip, 1e30)
    assert BiLMConfig(**config.to_dict()) == config
    other = BiLMConfig(**{**config.to_dict(), "depth": 3})
    assert config.differences(other) == ["depth: 2, 3"]
    assert config.differences(other, but=["depth"]) == []
