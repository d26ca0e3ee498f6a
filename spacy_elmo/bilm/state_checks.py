"""Fill a module with weights: all of them, in the right shapes, of finite numbers, or none."""

from typing import Dict, Mapping, TypeVar

import torch
from torch import Tensor, nn

from ..errors import Errors
from ..utils import show_name, show_names
from .plan import TensorHeader

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
