"""The weights of a biLM by name and shape; filling a module with weights; their hash."""

from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, Dict, Iterator, Mapping, NamedTuple, Tuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..errors import Errors
from ..utils import show_name, show_names
from .config import BiLMConfig
from .model import BiLM

FLOATS = ("float16", "bfloat16", "float32", "float64")
TABLE_KEYS = "word_table.keys"
_EXPECTED = {"float32": "floating-point numbers", "int64": "integers of 64 bits"}


class TensorHeader(NamedTuple):
    """Shape of a tensor and its type of numbers, as torch and NumPy call it."""

    shape: Tuple[int, ...]
    dtype: str = "float32"


def plan_weights(config: BiLMConfig) -> Dict[str, TensorHeader]:
    """The state of a biLM by name, without allocating memory for it."""
    with without_memory():
        return get_headers(BiLM(config).state_dict())


@contextmanager
def without_memory() -> Iterator[None]:
    """Make modules on torch's meta device: their tensors have shapes and no numbers."""
    with _NoRandomNumbers(), torch.device("meta"):
        yield


@contextmanager
def usual_numbers() -> Iterator[None]:
    """Make modules of float32 numbers on the CPU, whatever defaults a program gave to torch."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.device("cpu"):
            yield
    finally:
        torch.set_default_dtype(before)


class _NoRandomNumbers(TorchFunctionMode):
    """Skip the initialization of weights: to draw numbers on the meta device, torch would import
    its compiler and sympy, which takes two seconds and 70 MB."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.__name__ in ("normal_", "uniform_", "kaiming_uniform_", "xavier_uniform_"):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def get_headers(state: Mapping[str, Tensor]) -> Dict[str, TensorHeader]:
    return {
        name: TensorHeader(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        for name, tensor in state.items()
    }


def check_headers(
    expected: Mapping[str, TensorHeader], found: Mapping[str, TensorHeader], source: str
) -> None:
    """Compare tensors with those expected, before any number is read. The types are float32, for
    which any floating-point type does, and int64. RAISES (ValueError): EL020 for missing or
    unexpected names, EL021 for another shape or type."""
    check_names(expected, found, source)
    for name, (shape, dtype) in expected.items():
        header = found[name]
        text = f"the shape {header.shape}, expected {shape}"
        if header.shape == shape:
            if header.dtype in FLOATS if dtype in FLOATS else header.dtype == dtype:
                continue
            expected_type = _EXPECTED.get(dtype, dtype)
            text = f"the type {show_name(header.dtype)}, expected {expected_type}"
        raise ValueError(Errors.EL021.format(source=source, name=name, text=text))


def check_names(expected: Mapping[str, object], found: Mapping[str, object], source: str) -> None:
    """As `check_headers`, for the names alone. RAISES (ValueError): EL020."""
    missing, unexpected = set(expected) - set(found), set(found) - set(expected)
    if missing or unexpected:
        names = {"missing": show_names(missing), "unexpected": show_names(unexpected)}
        raise ValueError(Errors.EL020.format(source=source, **names))


def check_numbers(name: str, tensor: Tensor, source: str) -> None:
    """RAISES (ValueError): EL106 if a tensor of floating-point numbers holds NaN or infinity."""
    if not is_finite(tensor):
        places = find_infinite(tensor)
        problem = f"{len(places)} numbers are NaN, infinite or too large for 32 bits, the first at "
        problem += str(places[0].tolist())
        raise ValueError(Errors.EL106.format(name=name, source=source, problem=problem))


def is_finite(tensor: Tensor) -> bool:
    # Both bounds are NaN if any number is; no copy of the size of the tensor is made.
    return not tensor.numel() or bool(torch.isfinite(torch.stack(torch.aminmax(tensor))).all())


def find_infinite(tensor: Tensor) -> Tensor:
    """Indices of the numbers that are not finite, shape (n, n_axes)."""
    return torch.isfinite(tensor).logical_not().nonzero()


def load_weights(module: nn.Module, state: Dict[str, Tensor], source: str) -> None:
    """Copy weights of any floating-point type into a module, which is unchanged if anything is
    wrong. RAISES (ValueError): EL020 and EL021 as `check_headers`, EL106 for numbers that are not
    finite in the module's type, or keys of a word table that do not ascend."""
    expected = module.state_dict()
    check_headers(get_headers(expected), get_headers(state), source)
    cast = {name: state[name].to(tensor.dtype) for name, tensor in expected.items()}
    for name, tensor in cast.items():
        if tensor.is_floating_point():
            check_numbers(name, tensor, source)
        # Words are found by bisection.
        elif name == TABLE_KEYS and (tensor[1:] < tensor[:-1]).any():
            problem = "its integers do not ascend"
            raise ValueError(Errors.EL106.format(name=name, source=source, problem=problem))
    module.load_state_dict(cast)


def hash_weights(bilm: BiLM, precision: str) -> bytes:
    """Hash a biLM and the precision of its products: 16 bytes, the same for the same vectors."""
    # "zero" is the initial state of sequences, which was once a choice: saved results and
    # components hold such hashes, so a new field of the config may only be added to them with
    # a value that is not its default.
    settings = f"{bilm.config!r} zero {precision}"
    digest = blake2b(settings.encode("utf-8"), digest_size=16)
    add_tensors(digest, bilm.state_dict())
    return digest.digest()


def add_tensors(digest: blake2b, tensors: Mapping[str, Tensor]) -> None:
    """Add tensors to a hash, in the order of their names."""
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode("utf-8"))
        # As bytes: NumPy has no bfloat16.
        digest.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
