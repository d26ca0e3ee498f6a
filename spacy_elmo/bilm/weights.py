"""The weights of a biLM by name and shape, and filling a module with weights."""

import math
from typing import Dict, Iterator, Mapping, NamedTuple, Tuple, TypeVar

import torch
from torch import Tensor, nn

from ..errors import Errors
from ..utils import show_name, show_names
from .batch import N_CHARACTERS
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


FLOATS = ("float16", "bfloat16", "float32", "float64")
TABLE_KEYS = "word_table.keys"
# Weights of version 0.1.0 have a state to start sequences from, which was worse than zeros.
_FORMER = ("initial_hidden", "initial_cell")
_EXPECTED = {"float32": "floating-point numbers", "int64": "integers of 64 bits"}


Value = TypeVar("Value")


def drop_former(state: Mapping[str, Value]) -> Dict[str, Value]:
    """state (Mapping[str, Value]): something by the names of weights. RETURNS
    (Dict[str, Value]): without what only older versions have."""
    return {name: value for name, value in state.items() if name not in _FORMER}


def get_headers(state: Mapping[str, Tensor]) -> Dict[str, TensorHeader]:
    """state (Mapping[str, Tensor]): tensors. RETURNS (Dict[str, TensorHeader]): theirs."""
    return {
        name: TensorHeader(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        for name, tensor in state.items()
    }


def check_headers(
    expected: Mapping[str, TensorHeader], found: Mapping[str, TensorHeader], source: str
) -> None:
    """Compare what is there with what is wanted, before any number is read.

    expected (Mapping[str, TensorHeader]): by name; the types are float32, for which any
        floating-point type does, and int64.
    found (Mapping[str, TensorHeader]): by name.
    source (str): where they come from, for messages.
    RAISES (ValueError): EL020 for missing or unexpected names, EL021 for shapes, EL022 for
        another type of numbers.
    """
    check_names(expected, found, source)
    for name, (shape, dtype) in expected.items():
        if found[name].shape != shape:
            text = Errors.EL021.format(
                source=source, name=name, found=found[name].shape, expected=shape
            )
            raise ValueError(text)
        fits = found[name].dtype in FLOATS if dtype in FLOATS else found[name].dtype == dtype
        if not fits:
            kind = _EXPECTED.get(dtype, dtype)
            text = Errors.EL022.format(
                source=source, name=name, found=show_name(found[name].dtype), expected=kind
            )
            raise ValueError(text)


def check_names(expected: Mapping[str, object], found: Mapping[str, object], source: str) -> None:
    """As `check_headers`, for the names alone. RAISES (ValueError): EL020."""
    missing, unexpected = set(expected) - set(found), set(found) - set(expected)
    if missing or unexpected:
        raise ValueError(
            Errors.EL020.format(
                source=source, missing=show_names(missing), unexpected=show_names(unexpected)
            )
        )


def check_numbers(name: str, tensor: Tensor, source: str) -> None:
    """name (str): of a tensor. tensor (Tensor): read into 32 bits. source (str): where it
    comes from, for messages. RAISES (ValueError): EL106 if it holds NaN or infinity."""
    if not is_finite(tensor):
        places = find_infinite(tensor)
        text = Errors.EL106.format(
            name=name, source=source, count=len(places), place=places[0].tolist()
        )
        raise ValueError(text)


def is_finite(tensor: Tensor) -> bool:
    """tensor (Tensor): any floating-point numbers. RETURNS (bool): Whether all are finite."""
    # Both bounds are NaN if any number is; no copy of the size of the tensor is made.
    return not tensor.numel() or bool(torch.isfinite(torch.stack(torch.aminmax(tensor))).all())


def find_infinite(tensor: Tensor) -> Tensor:
    """tensor (Tensor): floating-point numbers. RETURNS (Tensor): indices of those that are
    not finite, shape (n, n_axes)."""
    return torch.isfinite(tensor).logical_not().nonzero()


def load_weights(module: nn.Module, state: Dict[str, Tensor], source: str) -> None:
    """Copy weights into a module in place.

    module (nn.Module): what to fill; untouched if anything is wrong.
    state (Dict[str, Tensor]): weights by the names of `module.state_dict()`, any
        floating-point type.
    source (str): where they come from, for messages.
    RAISES (ValueError): EL020 to EL022 as `check_headers`, EL106 for what is no number in
        the module's type, EL114 for keys of a word table that do not ascend.
    """
    expected, state = module.state_dict(), drop_former(state)
    check_headers(get_headers(expected), get_headers(state), source)
    cast = {name: state[name].to(tensor.dtype) for name, tensor in expected.items()}
    for name, tensor in cast.items():
        if tensor.is_floating_point():
            check_numbers(name, tensor, source)
        # Words are found by bisection.
        elif name == TABLE_KEYS and (tensor[1:] < tensor[:-1]).any():
            raise ValueError(Errors.EL114.format(name=name, source=source))
    module.load_state_dict(cast)
