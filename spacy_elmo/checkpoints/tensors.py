"""Files of tensors (safetensors), and matrices stored in 8 bits a number."""

import json
import re
import struct
from contextlib import contextmanager
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, Optional, Union

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from ..bilm.weights import TensorHeader, check_numbers, find_infinite, get_headers, is_finite
from ..errors import Errors
from ..files import require_file
from ..utils import show_reason

PathLike = Union[str, Path]
StateDict = Dict[str, Tensor]

# A file begins with the length of its header; tensors begin at multiples of 8 bytes.
_LENGTH = struct.Struct("<Q")
_ALIGNMENT = 8
# safetensors' names of types, such as "BF16" -> torch's "bfloat16".
_DTYPE = re.compile(r"^(BF|F|I|U)(\d+)$")
_KINDS = {"F": "float", "BF": "bfloat", "I": "int", "U": "uint"}

# The scales of a rounded matrix are stored under its name with this suffix.
_SUFFIX = ".row_scale"
_MAX_INT8 = 127


def read_headers(path: Path) -> Dict[str, TensorHeader]:
    """Read shapes and types of the tensors in a file, but no numbers."""
    require_file(path)
    with translate_errors(path), safetensors.safe_open(path, "pt") as file:
        headers: Dict[str, TensorHeader] = {}
        names: List[str] = file.keys()
        for name in names:
            part = file.get_slice(name)
            dtype = _DTYPE.sub(lambda match: _KINDS[match[1]] + match[2], part.get_dtype())
            headers[name] = TensorHeader(tuple(part.get_shape()), dtype)
        return headers


def read_metadata(path: Path) -> Dict[str, str]:
    """Read the metadata of a file."""
    require_file(path)
    with translate_errors(path), safetensors.safe_open(path, "pt") as file:
        return file.metadata() or {}


def read_tensors(path: Path) -> StateDict:
    """Read all tensors of a file whose headers were checked: copies, floating-point numbers, which
    must be finite, as float32."""
    require_file(path)
    state: StateDict = {}
    with translate_errors(path), safetensors.safe_open(path, "pt") as file:
        names: List[str] = file.keys()
        for name in names:
            tensor = file.get_tensor(name)
            dtype = torch.float32 if tensor.is_floating_point() else tensor.dtype
            state[name] = tensor.to(dtype, copy=True)
    for name, tensor in state.items():
        if tensor.is_floating_point():
            check_numbers(name, tensor, str(path))
    return state


def parse_tensors(content: bytes, source: str) -> StateDict:
    """Read the tensors of a file's content, with the types that they have; numbers are not
    checked."""
    with translate_errors(source):
        return safetensors.torch.load(content)


@contextmanager
def translate_errors(source: PathLike) -> Iterator[None]:
    """Make EL103 of any error: safetensors and h5py raise their own, the system's and Python's for
    damaged files."""
    try:
        yield
    except Exception as err:
        raise ValueError(Errors.EL103.format(path=source, error=show_reason(err))) from err


def write_tensors(
    path: Path,
    state: Mapping[str, Tensor],
    dtype: torch.dtype = torch.float32,
    metadata: Optional[Dict[str, str]] = None,
) -> None:
    """Write tensors, floating-point numbers as `dtype`. The same tensors and metadata give the same
    bytes. RAISES (ValueError): for numbers that are not finite (EL106) or too large for the
    type."""
    tensors = {name: _cast(name, tensor.detach(), dtype) for name, tensor in state.items()}
    content = memoryview(safetensors.torch.save(tensors, metadata=metadata))
    (n_bytes,) = _LENGTH.unpack_from(content)
    start = _LENGTH.size + n_bytes
    with path.open("wb") as file:
        file.write(_sort_metadata(bytes(content[_LENGTH.size : start])))
        file.write(content[start:])


def _cast(name: str, tensor: Tensor, dtype: torch.dtype) -> Tensor:
    if not tensor.is_floating_point():
        return tensor.cpu().contiguous()
    check_numbers(name, tensor, "the model to write")
    cast = tensor.to(dtype).cpu().contiguous()
    if not is_finite(cast):
        place = find_infinite(cast)[0].tolist()
        limits = torch.finfo(dtype)
        raise ValueError(
            f"'{name}' cannot be written with {limits.bits} bits: its number "
            f"{float(tensor[tuple(place)])} at {place} is above {limits.max}. Nothing was written. "
            "Write 32 bits: leave out `--half`."
        )
    return cast


def _sort_metadata(header: bytes) -> bytes:
    """Sort the metadata in a file's header by name: the library writes it in a random order.
    Returns the header with its length in front."""
    values = json.loads(header)
    if "__metadata__" in values:
        values["__metadata__"] = dict(sorted(values["__metadata__"].items()))
    text = json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % _ALIGNMENT)
    return _LENGTH.pack(len(text)) + text


def round_rows(state: Mapping[str, Tensor]) -> StateDict:
    """Round each matrix to 8 bits a number. The error of a number is at most half its row's scale:
    1/254 of the largest number in the row. Scales are stored beside the int8 matrices, float32,
    shape (n_rows,); vectors and integers stay as they are."""
    rounded: StateDict = {}
    for name, tensor in state.items():
        if tensor.ndim != 2 or not tensor.is_floating_point():
            rounded[name] = tensor
            continue
        check_numbers(name, tensor, "the model to write")
        matrix = tensor.detach().float()  # (n_rows, n_columns)
        scale = matrix.abs().amax(dim=1) / _MAX_INT8  # (n_rows,)
        rows = matrix / scale.clamp(min=torch.finfo(torch.float32).tiny)[:, None]
        rounded[name] = rows.round_().to(torch.int8)
        rounded[name + _SUFFIX] = scale
    return rounded


def restore_headers(headers: Mapping[str, TensorHeader], source: str) -> Dict[str, TensorHeader]:
    """Compute the headers of the tensors of `restore_rows`. RAISES (ValueError): EL103 for an
    int8 matrix without a scale for each row, or a scale without a matrix."""
    restored = dict(headers)
    for name in headers:
        if headers[name].dtype != "int8" and not name.endswith(_SUFFIX):
            continue
        name = name.removesuffix(_SUFFIX)
        matrix, scale = headers.get(name), headers.get(name + _SUFFIX)
        is_matrix = matrix is not None and matrix.dtype == "int8" and len(matrix.shape) == 2
        if matrix is None or not is_matrix or scale != TensorHeader(matrix.shape[:1]):
            error = f"'{name}' has 8 bits a number, but not one float32 scale for each row"
            raise ValueError(Errors.EL103.format(path=source, error=error))
        restored[name] = TensorHeader(matrix.shape)
        restored.pop(name + _SUFFIX, None)
    return restored


def restore_rows(state: Mapping[str, Tensor], source: str) -> StateDict:
    """Multiply rounded matrices by their scales. RAISES (ValueError): EL103 as
    `restore_headers`."""
    restored: StateDict = {}
    for name in restore_headers(get_headers(state), source):
        scale = state.get(name + _SUFFIX)
        restored[name] = state[name] if scale is None else state[name] * scale[:, None]
    return restored
