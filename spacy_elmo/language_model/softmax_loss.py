"""`softmax_loss`: log-likelihood against many words without their matrix of logits."""

from typing import Any, Tuple

import torch
from torch import Tensor

# Rows at a time: enough for fast products, and few if they are long, for the processor's
# cache and for memory.
_CPU_ROWS = 256
_LEAST_CPU_ROWS = 64
_CPU_NUMBERS = 2**22
_GPU_ROWS = 4096


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
        H, W = hidden.to(dtype), weight.to(dtype)
        W_t = W.t().contiguous()
        d_weight = torch.zeros_like(weight)
        d_offsets = torch.zeros_like(offsets)
        d_hidden, d_true = torch.empty_like(hidden), torch.empty_like(true)
        n_rows = _GPU_ROWS
        if hidden.device.type == "cpu":
            n_rows = max(_LEAST_CPU_ROWS, min(_CPU_ROWS, _CPU_NUMBERS // len(W)))
        scratch = offsets.new_empty(min(n_rows, len(H)), len(W))
        products = scratch if dtype == scratch.dtype else scratch.to(dtype)
        loss = true.new_zeros((), dtype=torch.float64)
        for start in range(0, len(H), n_rows):
            rows = slice(start, start + n_rows)
            h, t, hit = H[rows], true[rows], hits[rows]
            logits, product = scratch[: len(h)], products[: len(h)]
            if dtype == logits.dtype:
                torch.addmm(offsets, h, W_t, out=logits)
            else:
                torch.mm(h, W_t, out=product)
                torch.add(product, offsets, out=logits)
            # The true word is counted through `true` alone.
            found = torch.nonzero(hit >= 0)[:, 0]
            logits[found, hit[found]] = -torch.inf
            top = torch.maximum(logits.amax(dim=1), t)
            logits.sub_(top[:, None]).exp_()
            true_share = torch.exp(t - top)
            total = logits.sum(dim=1) + true_share
            loss += (torch.log(total) + top - t).sum(dtype=torch.float64)
            d_true[rows] = true_share / total - 1
            factor = (1 / total).to(logits.dtype)[:, None]
            if dtype == weight.dtype == logits.dtype:
                # Scaling what is narrow saves a pass over the logits.
                d_hidden[rows] = torch.mm(logits, W) * factor
                d_weight.addmm_(logits.t(), h * factor)
                d_offsets.addmv_(logits.t(), factor[:, 0])
            else:
                shares = product.copy_(logits.mul_(factor))
                d_hidden[rows] = torch.mm(shares, W)
                d_weight += torch.mm(shares.t(), h)
                d_offsets += logits.sum(dim=0)
        ctx.save_for_backward(d_hidden, d_weight, d_offsets, d_true)
        return loss.to(true.dtype)

    @staticmethod
    def backward(ctx: Any, d_loss: Tensor) -> Tuple[Any, ...]:
        return (*(gradient * d_loss for gradient in ctx.saved_tensors), None, None)


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
