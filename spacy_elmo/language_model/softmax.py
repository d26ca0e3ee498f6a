"""The softmax that both directions share: full, sampled or adaptive.

All have the same job: `loss` to train with, `log_probs` to report with. Only the
exact one is ever printed as a perplexity."""

import math
from typing import Any, Callable, Dict, Sequence, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import Errors
from ..registry import softmaxes


class SoftmaxModule(nn.Module):
    """Base class. See `Softmax` for the shapes.

    kind (str): its registered name.
    """

    kind: str

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """The loss to train with, summed over the rows."""
        raise NotImplementedError

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Exact log-probabilities of all words."""
        raise NotImplementedError


class Softmax(SoftmaxModule):
    """A linear layer over the vocabulary: exact and, for its size, slow.

    width (int): width of one direction of the top layer.
    n_words (int): words of the vocabulary.
    """

    kind = "full"

    def __init__(self, width: int, n_words: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_words, width))
        self.bias = nn.Parameter(torch.zeros(n_words))
        nn.init.normal_(self.weight, std=1 / math.sqrt(width))

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """hidden (Tensor): shape (n_rows, width). targets (Tensor): int64, (n_rows,).
        RETURNS (Tensor): negative log-likelihood in nats, summed over the rows."""
        true = _true_logits(hidden, self.weight[targets], self.bias[targets])
        return softmax_loss(hidden, self.weight, self.bias, true, targets)

    def logits(self, hidden: Tensor) -> Tensor:
        """hidden (Tensor): shape (n_rows, width). RETURNS (Tensor): (n_rows, n_words)."""
        return F.linear(hidden, self.weight, self.bias)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """hidden (Tensor): shape (n_rows, width). RETURNS (Tensor): exact log-probabilities
        in nats, shape (n_rows, n_words), float32."""
        return F.log_softmax(self.logits(hidden).float(), dim=1)


class SampledSoftmax(Softmax):
    """Train against a few sampled words: the sum over the vocabulary is estimated from
    `n_samples` draws by rank, log-uniform, each logit corrected by the logarithm of how
    often its word is expected among them. One sample serves a whole batch.

    width (int): width of one direction of the top layer.
    n_words (int): words of the vocabulary, the most frequent first.
    n_samples (int): draws, with replacement; words drawn twice count once.

    Source: Jean et al. 2015; TensorFlow's `sampled_softmax_loss`, used by bilm-tf.
    """

    kind = "sampled"
    log_expected: Tensor

    def __init__(self, width: int, n_words: int, n_samples: int = 4096) -> None:
        super().__init__(width, n_words)
        if type(n_samples) is not int or n_samples < 1:
            problem = f"n_samples = {n_samples!r}, expected a whole number, at least 1"
            raise ValueError(Errors.EL073.format(problem=problem))
        self.n_samples = n_samples
        ranks = torch.arange(n_words, dtype=torch.float64)
        share = torch.log((ranks + 2) / (ranks + 1)) / math.log(n_words + 1)
        # The chance that a word is drawn at least once.
        log_expected = torch.log(-torch.expm1(n_samples * torch.log1p(-share)))
        self.register_buffer("log_expected", log_expected.float(), persistent=False)

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """As `Softmax.loss`, estimated. Draws from torch's global generator."""
        n_words = self.weight.size(0)
        uniform = torch.rand(self.n_samples, device=targets.device, dtype=torch.float64)
        drawn = torch.exp(uniform * math.log(n_words + 1)).long() - 1
        sampled = torch.unique(drawn.clamp_(0, n_words - 1))
        weight = self.weight.index_select(0, torch.cat([sampled, targets]))
        offsets = self.bias - self.log_expected
        n = len(sampled)
        true = _true_logits(hidden, weight[n:], offsets[targets])
        # A drawn word that is the target would be counted twice.
        position = torch.searchsorted(sampled, targets).clamp_(max=n - 1)
        hits = torch.where(sampled[position] == targets, position, -1)
        return softmax_loss(hidden, weight[:n], offsets[sampled], true, hits)


def _true_logits(hidden: Tensor, weight: Tensor, offsets: Tensor) -> Tensor:
    """Logit of the true word of each row, shape (n_rows,)."""
    return (hidden.float() * weight.float()).sum(dim=1) + offsets


class AdaptiveSoftmax(SoftmaxModule):
    """Frequent words in a small head, rare ones in clusters of lower rank: exact as a
    distribution, and quick for a large vocabulary. Not a linear layer, so it cannot be
    exported to the AllenNLP format.

    width (int): width of one direction of the top layer.
    n_words (int): words of the vocabulary, the most frequent first.
    cutoffs (Sequence[int]): last rank of the head and of each cluster but the last;
        those beyond the vocabulary are left out.
    div_value (float): the rank of each cluster is this much smaller than the one before.

    Source: Grave et al. 2017; `torch.nn.AdaptiveLogSoftmaxWithLoss`.
    """

    kind = "adaptive"

    def __init__(
        self,
        width: int,
        n_words: int,
        cutoffs: Sequence[int] = (2000, 10000),
        div_value: float = 2.0,
    ) -> None:
        super().__init__()
        within = [cutoff for cutoff in cutoffs if 0 < cutoff < n_words]
        if not within:
            problem = f"cutoffs = {list(cutoffs)}, expected one below the {n_words} words"
            raise ValueError(Errors.EL073.format(problem=problem))
        self.softmax = nn.AdaptiveLogSoftmaxWithLoss(
            width, n_words, within, div_value=div_value, head_bias=True
        )

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """As `Softmax.loss`."""
        with torch.autocast(hidden.device.type, enabled=False):
            loss = -self.softmax(hidden.float(), targets).output.sum()
        # Clusters without a word in this batch need a gradient, since DDP exchanges all.
        return loss + 0.0 * sum(weight.sum() for weight in self.parameters())

    def log_probs(self, hidden: Tensor) -> Tensor:
        """As `Softmax.log_probs`."""
        return self.softmax.log_prob(hidden.float())


def make_softmax(kind: str, width: int, n_words: int, **settings: Any) -> SoftmaxModule:
    """Make a softmax with random weights by its registered name, for the width of one direction of
    the top layer (EL073 for an unknown name or impossible settings)."""
    makers: Dict[str, Callable[..., SoftmaxModule]] = softmaxes.get_all()
    if not isinstance(kind, str) or kind not in makers:
        problem = f"there is no '{kind}', only {', '.join(sorted(makers))}"
        raise ValueError(Errors.EL073.format(problem=problem))
    try:
        return makers[kind](width, n_words, **settings)
    except (TypeError, ValueError, ArithmeticError, RuntimeError) as err:
        if str(err).startswith("[EL"):
            raise
        raise ValueError(Errors.EL073.format(problem=err)) from err


def split_softmax(block: Dict[str, Any]) -> Tuple[str, Dict[str, Any]]:
    """Split [training.softmax] into its kind and the other settings (EL073 for those that follow
    from model and text)."""
    settings = dict(block)
    for key in ("width", "n_words"):
        if key in settings:
            raise ValueError(Errors.EL073.format(problem=f"'{key}' follows from model and text"))
    return settings.pop("kind", Softmax.kind), settings


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
        H, W = hidden.to(dtype), weight.to(dtype)  # (n_rows, width), (n_words, width)
        W_t = W.t().contiguous()  # (width, n_words)
        d_hidden, d_true = torch.empty_like(hidden), torch.empty_like(true)
        d_weight, d_offsets = torch.zeros_like(weight), torch.zeros_like(offsets)
        n = _rows_at_a_time(len(W), hidden.device)
        scratch = offsets.new_empty(min(n, len(H)), len(W))  # (n, n_words)
        is_one_type = dtype == scratch.dtype == weight.dtype
        products = scratch if is_one_type else scratch.to(dtype)  # (n, n_words)
        loss = true.new_zeros((), dtype=torch.float64)
        for start in range(0, len(H), n):
            rows = slice(start, start + n)
            h, t = H[rows], true[rows]  # (n, width), (n,)
            logits, product = scratch[: len(h)], products[: len(h)]  # (n, n_words)
            if is_one_type:
                torch.addmm(offsets, h, W_t, out=logits)
            else:
                torch.mm(h, W_t, out=product)
                torch.add(product, offsets, out=logits)
            top, true_part, total = _exponentiate(logits, t, hits[rows])  # each (n,)
            loss += (torch.log(total) + top - t).sum(dtype=torch.float64)
            d_true[rows] = true_part / total - 1  # (n,)
            # logits * factor are probabilities now.
            factor = (1 / total).to(logits.dtype)[:, None]  # (n, 1)
            if is_one_type:
                # Scaling the narrow matrices saves a pass over the logits.
                d_hidden[rows] = torch.mm(logits, W) * factor  # (n, width)
                d_weight.addmm_(logits.t(), h * factor)  # (n_words, width)
                d_offsets.addmv_(logits.t(), factor[:, 0])  # (n_words,)
            else:
                product.copy_(logits.mul_(factor))  # (n, n_words)
                d_hidden[rows] = torch.mm(product, W)  # (n, width)
                d_weight.add_(torch.mm(product.t(), h))  # (n_words, width)
                d_offsets.add_(logits.sum(dim=0))  # (n_words,)
        ctx.save_for_backward(d_hidden, d_weight, d_offsets, d_true)
        return loss.to(true.dtype)

    @staticmethod
    def backward(ctx: Any, d_loss: Tensor) -> Tuple[Any, ...]:
        return (*(gradient * d_loss for gradient in ctx.saved_tensors), None, None)


def _rows_at_a_time(n_words: int, device: torch.device) -> int:
    if device.type != "cpu":
        return _GPU_ROWS
    return max(_LEAST_CPU_ROWS, min(_CPU_ROWS, _CPU_NUMBERS // n_words))


def _exponentiate(logits: Tensor, true: Tensor, hits: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    """Replace logits by exp(logit - top). Return top, the highest logit of each row,
    exp(true - top), and the sum of all exponentials, each (n,)."""
    # The true word is counted through `true` alone.
    is_hit = torch.nonzero(hits >= 0)[:, 0]  # (n_hits,)
    logits[is_hit, hits[is_hit]] = -torch.inf
    top = torch.maximum(logits.amax(dim=1), true)  # (n,)
    logits.sub_(top[:, None]).exp_()  # (n, n_words)
    true_part = torch.exp(true - top)  # (n,)
    return top, true_part, logits.sum(dim=1) + true_part


def softmax_loss(
    hidden: Tensor, weight: Tensor, offsets: Tensor, true: Tensor, hits: Tensor
) -> Tensor:
    """Sum log(exp(true) + sum_j exp(hidden w_j + offset_j)) - true over the rows, where
    j is not the row's hit. Under `torch.autocast` the products take its type.

    hidden (Tensor): shape (n_rows, width).
    weight (Tensor): words to tell the true one from, shape (n_words, width).
    offsets (Tensor): added to their logits, shape (n_words,).
    true (Tensor): logit of the true word, shape (n_rows,).
    hits (Tensor): row of `weight` with the true word, or -1; int64, (n_rows,).
    RETURNS (Tensor): the loss in nats, a scalar, with gradients for the first four.
    """
    device = hidden.device.type
    dtype = hidden.dtype
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
    with torch.autocast(device, enabled=False):
        return _SoftmaxLoss.apply(hidden, weight, offsets, true, hits, dtype)
