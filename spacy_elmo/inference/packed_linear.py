"""`PackedLinear`: a matrix product with the weight laid out once, for this processor.

oneDNN keeps a weight in the blocks that its kernels read; torch exposes that to its
compiler's output, as operators without a public name. They are used where they exist
and agree with a plain product, which does the work elsewhere.
"""

import logging
from typing import Callable, Optional, cast

import torch
from torch import Tensor

from ..errors import Errors

logger = logging.getLogger("spacy_elmo")

PRECISIONS = ("fp32", "bf16", "fp16", "int8")

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
# A product with fewer multiplications is over before oneDNN has looked up its kernel.
_LEAST_PACKED = 2**20
# Rows for which oneDNN chooses a weight's blocks. Any number can be multiplied.
_TYPICAL_ROWS = 64
# `round_rows` adds less than this.
MOST_ROUNDING = 64
_INT8_MAX = 127.0
_INT8_ZERO = 128
# Instead of a scale of 0.
_TINY = 1e-12


def choose_least_rows(precision: str) -> int:
    """Choose how many rows are multiplied at least.

    A single row takes other kernels than two, which add up in another order. The short
    types round that up to a step of theirs, and later steps of time make more of it; so
    there a row has company, for no more time. With float32 it is noise, and a kernel for
    one row up to three times as fast.

    precision (str): of the products. RETURNS (int): 1 or 2.
    """
    return 1 if precision == "fp32" else 2


def round_rows(n_rows: int, least: int = 1) -> int:
    """Round up to one of a few numbers of rows: oneDNN compiles a kernel for each, in
    milliseconds.

    n_rows (int): rows to be multiplied.
    least (int): from `choose_least_rows`.
    RETURNS (int): at least as many.
    """
    n_rows = max(n_rows, least)
    if n_rows <= 1:
        return n_rows
    multiple = 2 if n_rows <= 8 else 8 if n_rows <= 64 else 16 if n_rows <= 256 else MOST_ROUNDING
    return -(-n_rows // multiple) * multiple


def require_precision(precision: str, device: str) -> None:
    """precision (str): one of `PRECISIONS`. device (str): "cpu" or another of torch's.
    RAISES (ValueError): EL016 if that device does not compute in it."""
    if not _is_supported(precision, device):
        known = ", ".join(name for name in PRECISIONS if _is_supported(name, device))
        raise ValueError(Errors.EL016.format(device=device, value=precision, known=known))


def _is_supported(precision: str, device: str) -> bool:
    if precision == "fp32":
        return True
    try:
        return _probe_device(precision, device)
    except Exception as err:
        # Private operators: what they raise where they are not, or not as here, is not known.
        logger.debug("No %s on the %s: %r", precision, device, err)
        return False


def _probe_device(precision: str, device: str) -> bool:
    if device == "cuda":
        return precision == "fp16" or (precision == "bf16" and torch.cuda.is_bf16_supported())
    if device != "cpu" or not _is_onednn_on():
        return False
    if precision == "int8":
        return _is_int8_exact()
    # Where it is not, oneDNN converts to float32, at a loss of time.
    return bool(getattr(torch.ops.mkldnn, f"_is_mkldnn_{precision}_supported")())


def _is_onednn_on() -> bool:
    return torch.backends.mkldnn.is_available() and bool(torch.backends.mkldnn.enabled)


def _is_int8_exact() -> bool:
    """Whether sums of products of the largest integers are right: processors without
    instructions for it add them up in sixteen bits, which are too few."""
    ones = torch.ones(64, 64, device="cpu")
    return bool((_Int8(ones, None)(ones) - 64.0).abs().max() < 1.0)


class PackedLinear:
    """Compute X W + b in a precision; what comes in and goes out is float32.

    A row's result does not depend on the other rows, but for the order of summation; with
    another precision than "fp32" and at least two rows, not for that either.

    weight (Tensor): float32, shape (n_in, n_out), copied.
    bias (Optional[Tensor]): float32, shape (n_out,), copied.
    precision (str): one that `require_precision` lets pass.
    least_rows (int): fewest rows that will come.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Optional[Tensor] = None,
        precision: str = "fp32",
        least_rows: int = 1,
    ) -> None:
        self._multiply: Callable[[Tensor], Tensor]
        if precision == "int8":
            self._multiply = _Int8(weight, bias)
        else:
            self._multiply = _Float(weight, bias, DTYPES[precision], least_rows)

    def __call__(self, X: Tensor) -> Tensor:
        """X (Tensor): shape (n_rows, n_in). RETURNS (Tensor): X W + b, a new tensor of
        shape (n_rows, n_out)."""
        return self._multiply(X)


class _Float:
    """X W + b in a type of floating-point numbers."""

    def __init__(
        self, weight: Tensor, bias: Optional[Tensor], dtype: torch.dtype, least_rows: int
    ) -> None:
        self.dtype = dtype
        self.n_weights = weight.numel()
        self.bias = None if bias is None else bias.to(dtype, copy=True)
        self.weight: Optional[Tensor] = weight.to(dtype, copy=True).contiguous()
        self.packed = _pack(self.weight)
        if self.packed is not None and self._is_packed(least_rows):
            self.weight = None
        elif weight.size(0) > weight.size(1) and self.n_weights >= _LEAST_PACKED:
            # A large tall weight is read faster column by column.
            self.weight = self.weight.t().contiguous().t()

    def _is_packed(self, n_rows: int) -> bool:
        # Shorter types are packed whatever their number: the BLAS reads them slowly.
        is_short = self.dtype != torch.float32
        return is_short or (n_rows > 1 and n_rows * self.n_weights >= _LEAST_PACKED)

    def __call__(self, X: Tensor) -> Tensor:
        X = X.to(self.dtype)
        if self.packed is not None and (self.weight is None or self._is_packed(X.size(0))):
            Y = _multiply_packed(X, self.packed, self.bias)
        elif self.bias is None:
            Y = torch.mm(X, cast(Tensor, self.weight))
        else:
            Y = torch.addmm(self.bias, X, cast(Tensor, self.weight))
        return Y.float()


class _Int8:
    """X W + b with eight-bit integers: each column of W and each row of X, at each call,
    is scaled so that its largest number becomes 127.

    All that depends on how torch spells such products is here.
    """

    def __init__(self, weight: Tensor, bias: Optional[Tensor]) -> None:
        scales = weight.abs().amax(dim=0).clamp_(min=_TINY).div_(_INT8_MAX)
        W = weight.div(scales).round_().t().contiguous().to(torch.int8)
        self.packed = torch.ops.onednn.qlinear_prepack(W, [_TYPICAL_ROWS, weight.size(0)])
        self.bias = None if bias is None else bias.clone()
        self.scales = scales
        self.zeros = torch.zeros(len(scales), dtype=torch.int32, device=weight.device)

    def __call__(self, X: Tensor) -> Tensor:
        # A scale for each row, not for all: batch mates change nothing.
        scales = X.abs().amax(dim=1, keepdim=True).clamp_(min=_TINY).div_(_INT8_MAX)
        rounded = (X / scales).round_().add_(_INT8_ZERO).to(torch.uint8)
        Y = torch.ops.onednn.qlinear_pointwise(
            rounded, 1.0, _INT8_ZERO, self.packed, self.scales, self.zeros,
            None, 1.0, 0, torch.float32, "none", [], "",
        )  # fmt: skip
        return Y.mul_(scales) if self.bias is None else torch.addcmul(self.bias, Y, scales)


def _multiply_packed(X: Tensor, packed: Tensor, bias: Optional[Tensor]) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(X, packed, bias, "none", [], "")


def _pack(weight: Tensor) -> Optional[Tensor]:
    """weight (Tensor): shape (n_in, n_out). RETURNS (Optional[Tensor]): the same for
    oneDNN; None if this build of torch cannot, or computes something else with it."""
    if not _is_onednn_on():
        return None
    try:
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.t().contiguous(), _TYPICAL_ROWS)
        X = torch.linspace(-1.0, 1.0, 2 * weight.size(0), device=weight.device)
        X = X.view(2, -1).to(weight.dtype)
        agree = torch.allclose(_multiply_packed(X, packed, None), X @ weight, rtol=1e-2, atol=1e-2)
    except Exception as err:
        # Private operators: what they raise where they are not, or not as here, is not known.
        logger.debug("Without packed weights: %r", err)
        return None
    return packed if agree else None
