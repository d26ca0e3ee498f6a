"""Files of tensors (safetensors): read with all checks, written with the same bytes each time."""

import json
import struct
from contextlib import contextmanager
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, Optional

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from ..bilm.weights import TensorHeader, check_numbers, find_infinite, is_finite
from ..errors import Errors
from ..files import require_file
from ..utils import show_reason

StateDict = Dict[str, Tensor]

# A file begins with the length of its header; tensors begin at multiples of 8 bytes.
_LENGTH = struct.Struct("<Q")
_ALIGNMENT = 8
# safetensors' names of types -> those of torch, where a name says more than a code.
_DTYPES = {"F": "float", "BF": "bfloat", "I": "int", "U": "uint"}


def read_headers(path: Path) -> Dict[str, TensorHeader]:
    """Read what a file says of its tensors. No number is read.

    path (Path): the file.
    RETURNS (Dict[str, TensorHeader]): by name.
    RAISES (ValueError): EL100 or EL101 if there is no file, EL033 if it cannot be read.
    """
    require_file(path)
    with _translate_errors(str(path)), safetensors.safe_open(path, "pt") as file:
        names: List[str] = file.keys()
        slices = {name: file.get_slice(name) for name in names}
        return {
            name: TensorHeader(tuple(part.get_shape()), _name_dtype(part.get_dtype()))
            for name, part in slices.items()
        }


def _name_dtype(code: str) -> str:
    """code (str): such as "BF16". RETURNS (str): such as "bfloat16"."""
    letters = code.rstrip("0123456789")
    return _DTYPES.get(letters, code) + code[len(letters) :] if letters in _DTYPES else code


def read_metadata(path: Path) -> Dict[str, str]:
    """path (Path): the file. RETURNS (Dict[str, str]): its notes. RAISES (ValueError): as
    `read_headers`."""
    require_file(path)
    with _translate_errors(str(path)), safetensors.safe_open(path, "pt") as file:
        return file.metadata() or {}


def read_tensors(path: Path) -> StateDict:
    """Read all tensors of a file whose headers were checked.

    path (Path): the file.
    RETURNS (StateDict): floating-point numbers as float32, others as they are. None of them
        is a view of the file, which may be replaced while they are in use.
    RAISES (ValueError): as `read_headers`, EL106 for what is no number.
    """
    require_file(path)
    state: StateDict = {}
    with _translate_errors(str(path)), safetensors.safe_open(path, "pt") as file:
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
    """content (bytes): of a file of tensors. source (str): where it comes from, for messages.
    RETURNS (StateDict): tensors of the type they have, not checked. RAISES (ValueError):
    EL033 if they cannot be read."""
    with _translate_errors(source):
        return safetensors.torch.load(content)


@contextmanager
def _translate_errors(source: str) -> Iterator[None]:
    # The library has errors of its own, of the system and of Python for what it cannot read.
    try:
        yield
    except Exception as err:
        error = show_reason(err)
        raise ValueError(Errors.EL033.format(path=source, error=error)) from err


def write_tensors(
    path: Path,
    state: Mapping[str, Tensor],
    dtype: torch.dtype = torch.float32,
    metadata: Optional[Dict[str, str]] = None,
) -> None:
    """Write tensors. The same tensors and notes are the same bytes.

    path (Path): file to write.
    state (Mapping[str, Tensor]): by name.
    dtype (torch.dtype): of the stored floating-point numbers.
    metadata (Optional[Dict[str, str]]): notes.
    RAISES (ValueError): EL106 for what is no number, EL107 for what is too large for the
        type; OSError if the file cannot be written.
    """
    tensors = {name: _cast(name, tensor.detach(), dtype) for name, tensor in state.items()}
    content = memoryview(safetensors.torch.save(tensors, metadata=metadata))
    (n_bytes,) = _LENGTH.unpack_from(content)
    start = _LENGTH.size + n_bytes
    with path.open("wb") as file:
        file.write(_sort_notes(bytes(content[_LENGTH.size : start])))
        file.write(content[start:])


def _cast(name: str, tensor: Tensor, dtype: torch.dtype) -> Tensor:
    if not tensor.is_floating_point():
        return tensor.cpu().contiguous()
    check_numbers(name, tensor, "the model to write")
    cast = tensor.to(dtype).cpu().contiguous()
    if not is_finite(cast):
        places = find_infinite(cast)
        place = tuple(places[0].tolist())
        limits = torch.finfo(dtype)
        text = Errors.EL107.format(
            name=name,
            n_bits=limits.bits,
            count=len(places),
            most=limits.max,
            value=float(tensor[place]),
            place=list(place),
        )
        raise ValueError(text)
    return cast


def _sort_notes(header: bytes) -> bytes:
    """A file's header (JSON) with its length before it, and the notes in the order of their
    names: the library writes them in a random one."""
    values = json.loads(header)
    if "__metadata__" in values:
        values["__metadata__"] = dict(sorted(values["__metadata__"].items()))
    text = json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % _ALIGNMENT)
    return _LENGTH.pack(len(text)) + text
