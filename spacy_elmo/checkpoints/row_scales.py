"""Matrices stored in 8 bits a number: each row as whole numbers and a scale of its own."""

from typing import Mapping

import torch
from torch import Tensor

from ..bilm.state_checks import check_numbers
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


def restore_rows(state: Mapping[str, Tensor], source: str) -> StateDict:
    """Undo `round_rows`, but for what it rounded.

    state (Mapping[str, Tensor]): as read.
    source (str): where it comes from, for the message.
    RETURNS (StateDict): float32 matrices under their names.
    RAISES (ValueError): EL256 for an int8 matrix without a scale for each row, or a scale
        without a matrix.
    """
    restored: StateDict = {}
    for name, tensor in state.items():
        matrix = name.removesuffix(_SUFFIX)
        if name.endswith(_SUFFIX) and matrix in state and state[matrix].dtype == torch.int8:
            continue
        scale = state.get(name + _SUFFIX)
        if tensor.dtype == torch.int8 and _fits(tensor, scale):
            assert scale is not None
            restored[name] = tensor * scale[:, None]
        elif tensor.dtype == torch.int8 or name.endswith(_SUFFIX):
            raise ValueError(Errors.EL256.format(path=source, name=matrix))
        else:
            restored[name] = tensor
    return restored


def _fits(matrix: Tensor, scale: object) -> bool:
    return (
        isinstance(scale, Tensor)
        and scale.dtype == torch.float32
        and matrix.ndim == 2
        and scale.shape == matrix.shape[:1]
    )
