"""Matrices stored in 8 bits a number: each row as whole numbers and a scale of its own."""

from typing import Dict, Mapping

import torch
from torch import Tensor

from ..bilm.weights import TensorHeader, check_numbers, get_headers
from ..errors import Errors
from .tensors import StateDict

_SUFFIX = ".row_scale"
_MOST = 127


def round_rows(state: Mapping[str, Tensor]) -> StateDict:
    """Round each matrix to 8 bits a number. A number is off by half its row's scale at most:
    1/254 of the row's largest one.

    state (Mapping[str, Tensor]): by name; vectors and whole numbers stay as they are.
    RETURNS (StateDict): int8 matrices under their names, and the scales beside them, float32,
        shape (n_rows,).
    RAISES (ValueError): EL106 for what is no number.
    """
    rounded: StateDict = {}
    for name, tensor in state.items():
        if tensor.ndim != 2 or not tensor.is_floating_point():
            rounded[name] = tensor
            continue
        check_numbers(name, tensor, "the model to write")
        matrix = tensor.detach().float()  # (n_rows, n_columns)
        scale = matrix.abs().amax(dim=1) / _MOST  # (n_rows,)
        rows = matrix / scale.clamp(min=torch.finfo(torch.float32).tiny)[:, None]
        rounded[name] = rows.round_().to(torch.int8)
        rounded[name + _SUFFIX] = scale
    return rounded


def restore_headers(headers: Mapping[str, TensorHeader], source: str) -> Dict[str, TensorHeader]:
    """What `restore_rows` will give, before any number is read.

    headers (Mapping[str, TensorHeader]): of the tensors that are stored.
    source (str): where they come from, for the message.
    RETURNS (Dict[str, TensorHeader]): of those that they stand for.
    RAISES (ValueError): EL256 for an int8 matrix without a scale for each row, or a scale
        without a matrix.
    """
    restored: Dict[str, TensorHeader] = {}
    for name, header in headers.items():
        matrix = name.removesuffix(_SUFFIX)
        if name.endswith(_SUFFIX) and _is_rounded(headers, matrix):
            continue
        if _is_rounded(headers, name):
            restored[name] = TensorHeader(header.shape)
        elif header.dtype == "int8" or name.endswith(_SUFFIX):
            raise ValueError(Errors.EL256.format(path=source, name=matrix))
        else:
            restored[name] = header
    return restored


def _is_rounded(headers: Mapping[str, TensorHeader], name: str) -> bool:
    matrix, scale = headers.get(name), headers.get(name + _SUFFIX)
    return (
        matrix is not None
        and matrix.dtype == "int8"
        and len(matrix.shape) == 2
        and scale == TensorHeader(matrix.shape[:1])
    )


def restore_rows(state: Mapping[str, Tensor], source: str) -> StateDict:
    """Undo `round_rows`, but for what it rounded.

    state (Mapping[str, Tensor]): as read.
    source (str): where it comes from, for the message.
    RETURNS (StateDict): float32 matrices under their names.
    RAISES (ValueError): EL256 as `restore_headers`.
    """
    restored: StateDict = {}
    for name in restore_headers(get_headers(state), source):
        scale = state.get(name + _SUFFIX)
        restored[name] = state[name] if scale is None else state[name] * scale[:, None]
    return restored
