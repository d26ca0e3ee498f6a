"""`softmax_loss`: log-likelihood against many words without their matrix of logits."""

from typing import Any, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

# Rows at a time: enough for fast products, and few if they are long, for the processor's
# cache and for memory.
_CPU_ROWS = 256
_LEAST_CPU_ROWS = 64
_CPU_NUMBERS = 2**22
_GPU_ROWS = 4096


class _Gradients(NamedTuple):
    """Of the loss, each in the shape of its argument of `softmax_loss`; None where the words are
    not trained."""

    hidden: Tensor
    weight: Optional[Tensor]
    offsets: Optional[Tensor]
    true: Tensor


class _SoftmaxLoss(torch.autograd.Function):
    """The loss is a sum, so its gradients are known up to a factor as soon as the
    logits are: they are computed in the same pass, and scaled by `backward`."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        offsets: Tensor,
        true: Tensor,
        hits: Tensor,
        dtype: torch.dtype,
    ) -> Tensor:
        H, W = hidden.to(dtype), weight.to(dtype)  # (n_rows, width), (n_words, width)
        W_t = W.t().contiguous()  # (width, n_words)
        gradients = _Gradients(
            torch.empty_like(hidden),
            torch.zeros_like(weight) if ctx.needs_input_grad[1] else None,
            torch.zeros_like(offsets) if ctx.needs_input_grad[2] else None,
            torch.empty_like(true),
        )
        n = _rows_at_a_time(len(W), hidden.device)
        scratch = offsets.new_empty(min(n, len(H)), len(W))  # (n, n_words)
        products = scratch if dtype == scratch.dtype else scratch.to(dtype)  # (n, n_words)
        loss = true.new_zeros((), dtype=torch.float64)
        for start in range(0, len(H), n):
            rows = slice(start, start + n)
            h, t = H[rows], true[rows]  # (n, width), (n,)
            logits, product = scratch[: len(h)], products[: len(h)]  # (n, n_words)
            _compute_logits(h, W_t, offsets, product, out=logits)
            top, true_part, total = _exponentiate(logits, t, hits[rows])  # each (n,)
            loss += (torch.log(total) + top - t).sum(dtype=torch.float64)
            gradients.true[rows] = true_part / total - 1  # (n,)
            factor = (1 / total).to(logits.dtype)[:, None]  # (n, 1)
            _add_gradients(gradients, rows, h, W, logits, product, factor)
        ctx.save_for_backward(*gradients)
        return loss.to(true.dtype)

    @staticmethod
    def backward(ctx: Any, d_loss: Tensor) -> Tuple[Any, ...]:
        scaled = (None if g is None else g * d_loss for g in ctx.saved_tensors)
        return (*scaled, None, None)


def _rows_at_a_time(n_words: int, device: torch.device) -> int:
    if device.type != "cpu":
        return _GPU_ROWS
    return max(_LEAST_CPU_ROWS, min(_CPU_ROWS, _CPU_NUMBERS // n_words))


def _compute_logits(h: Tensor, W_t: Tensor, offsets: Tensor, product: Tensor, out: Tensor) -> None:
    """h (Tensor): (n, width). W_t (Tensor): (width, n_words). offsets (Tensor): (n_words,).
    product (Tensor): scratch in the type of h, (n, n_words). out (Tensor): gets the logits,
    (n, n_words)."""
    if h.dtype == out.dtype:
        torch.addmm(offsets, h, W_t, out=out)
    else:
        torch.mm(h, W_t, out=product)
        torch.add(product, offsets, out=out)


def _exponentiate(logits: Tensor, true: Tensor, hits: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    """logits (Tensor): (n, n_words), replaced by exp(logit - top). true, hits (Tensor): (n,).
    RETURNS top, the highest logit of each row; exp(true - top); and the sum of both
    exponentials: each (n,)."""
    # The true word is counted through `true` alone.
    is_hit = torch.nonzero(hits >= 0)[:, 0]  # (n_hits,)
    logits[is_hit, hits[is_hit]] = -torch.inf
    top = torch.maximum(logits.amax(dim=1), true)  # (n,)
    logits.sub_(top[:, None]).exp_()  # (n, n_words)
    true_part = torch.exp(true - top)  # (n,)
    return top, true_part, logits.sum(dim=1) + true_part


def _add_gradients(
    gradients: _Gradients,
    rows: slice,
    h: Tensor,
    W: Tensor,
    exps: Tensor,
    product: Tensor,
    factor: Tensor,
) -> None:
    """h (Tensor): (n, width). W (Tensor): (n_words, width). exps (Tensor): from
    `_exponentiate`, (n, n_words); overwritten. product (Tensor): scratch in the type of h,
    (n, n_words). factor (Tensor): exps * factor are probabilities, (n, 1)."""
    d_weight, d_offsets = gradients.weight, gradients.offsets
    if h.dtype == exps.dtype and (d_weight is None or h.dtype == d_weight.dtype):
        # Scaling what is narrow saves a pass over the logits.
        gradients.hidden[rows] = torch.mm(exps, W) * factor  # (n, width)
        if d_weight is not None:
            d_weight.addmm_(exps.t(), h * factor)  # (n_words, width)
        if d_offsets is not None:
            d_offsets.addmv_(exps.t(), factor[:, 0])  # (n_words,)
    else:
        probabilities = product.copy_(exps.mul_(factor))  # (n, n_words)
        gradients.hidden[rows] = torch.mm(probabilities, W)  # (n, width)
        if d_weight is not None:
            d_weight.add_(torch.mm(probabilities.t(), h))  # (n_words, width)
        if d_offsets is not None:
            d_offsets.add_(exps.sum(dim=0))  # (n_words,)


def softmax_loss(
    hidden: Tensor, weight: Tensor, offsets: Tensor, true: Tensor, hits: Tensor
) -> Tensor:
    """Sum log(exp(true) + sum_j exp(hidden w_j + offset_j)) - true over the rows, where
    j is not the row's hit. Under `torch.autocast` the products take its type.

    hidden (Tensor): shape (n_rows, width).
    weight (Tensor): words to tell the true one from, shape (n_words, width).
    offsets (Tensor): added to their logits, shape (n_words,).
    true (Tensor): logit of the true word, shape (n_rows,).
    hits (Tensor): row of `weight` that is the true word, -1 if none; int64, (n_rows,).
    RETURNS (Tensor): the loss in nats, a scalar, with gradients for the first four.
    """
    device = hidden.device.type
    dtype = hidden.dtype
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
    with torch.autocast(device, enabled=False):
        return _SoftmaxLoss.apply(hidden, weight, offsets, true, hits, dtype)
