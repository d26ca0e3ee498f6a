"""The weights of a biLM by name and shape, without making one."""

import math
from typing import Dict, Iterator, NamedTuple, Tuple

from ..errors import Errors
from .characters import N_CHARACTERS
from .config import BiLMConfig

# 16 GB; the largest published biLM has 94 million.
MOST_WEIGHTS = 4_000_000_000
# Words that every table has: the two boundaries and the unknown word.
N_SPECIAL_WORDS = 3


class TensorHeader(NamedTuple):
    """What is known of a tensor before its numbers.

    shape (Tuple[int, ...]): its shape.
    dtype (str): its type of numbers, as torch and NumPy call it.
    """

    shape: Tuple[int, ...]
    dtype: str = "float32"


def plan_weights(config: BiLMConfig) -> Dict[str, TensorHeader]:
    """config (BiLMConfig): a shape. RETURNS (Dict[str, TensorHeader]): what the state of such
    a biLM has, by the names of `BiLM.state_dict()`."""
    shapes = {
        **dict(_plan_cells(config)),
        **dict(_plan_char_cnn(config) if config.input == "characters" else _plan_table(config)),
    }
    plan = {name: TensorHeader(shape) for name, shape in shapes.items()}
    if config.input != "characters":
        plan["word_table.keys"] = TensorHeader((config.n_words,), "int64")
    return plan


def check_size(config: BiLMConfig) -> None:
    """config (BiLMConfig): a shape. RAISES (ValueError): EL105 for more weights than a biLM
    can have."""
    n_weights = sum(math.prod(header.shape) for header in plan_weights(config).values())
    if n_weights > MOST_WEIGHTS:
        n_gb = n_weights * 4 / 1e9
        text = Errors.EL105.format(n_weights=n_weights, n_gb=n_gb, most=MOST_WEIGHTS)
        raise ValueError(text)


def _plan_cells(config: BiLMConfig) -> Iterator[Tuple[str, Tuple[int, ...]]]:
    width, cell_width = config.direction_width, config.cell_width
    for direction in ("forward", "backward"):
        for layer in range(config.depth):
            name = f"{direction}_lstm.layers.{layer}"
            yield f"{name}.weight", (2 * width, 4 * cell_width)
            yield f"{name}.bias", (4 * cell_width,)
            if config.projection:
                yield f"{name}.projection", (cell_width, width)


def _plan_char_cnn(config: BiLMConfig) -> Iterator[Tuple[str, Tuple[int, ...]]]:
    n_filters = config.n_filters
    yield "char_cnn.embedding.weight", (N_CHARACTERS, config.char_width)
    for i, (filter_width, number) in enumerate(config.filters):
        yield f"char_cnn.convolutions.{i}.weight", (number, config.char_width, filter_width)
        yield f"char_cnn.convolutions.{i}.bias", (number,)
    for i in range(config.n_highway):
        yield f"char_cnn.highways.{i}.linear.weight", (2 * n_filters, n_filters)
        yield f"char_cnn.highways.{i}.linear.bias", (2 * n_filters,)
    yield "char_cnn.projection.weight", (config.direction_width, n_filters)
    yield "char_cnn.projection.bias", (config.direction_width,)


def _plan_table(config: BiLMConfig) -> Iterator[Tuple[str, Tuple[int, ...]]]:
    width = config.vector_width or config.direction_width
    yield "word_table.vectors", (config.n_words, width)
    yield "word_table.special", (N_SPECIAL_WORDS, width)
    if config.input == "vectors":
        yield "word_table.projection.weight", (config.direction_width, width)
        yield "word_table.projection.bias", (config.direction_width,)
