"""The softmax that both directions share: full, sampled or adaptive.

All have the same job: `loss` to train with, `log_probs` to report with. Only the
exact one is ever printed as a perplexity.
"""

import math
from typing import Any, Callable, Dict, Sequence, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import Errors
from ..registry import softmaxes
from ..utils import require_least
from .softmax_loss import softmax_loss

# Of a step: more than a vocabulary has words.
_MOST_SAMPLES = 100_000_000


class SoftmaxModule(nn.Module):
    """What every softmax can do. See `Softmax` for the shapes.

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
        if type(n_samples) is not int or n_samples > _MOST_SAMPLES:
            problem = f"n_samples = {n_samples}, expected a whole number, at most {_MOST_SAMPLES}"
            raise ValueError(Errors.EL073.format(problem=problem))
        require_least("n_samples", n_samples, 1)
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
    """Logit of each row with a weight of its own, shape (n_rows,)."""
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
            raise ValueError(Errors.EL072.format(cutoffs=list(cutoffs), n_words=n_words))
        self.softmax = nn.AdaptiveLogSoftmaxWithLoss(
            width, n_words, within, div_value=div_value, head_bias=True
        )

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """As `Softmax.loss`."""
        with torch.autocast(hidden.device.type, enabled=False):
            loss = -self.softmax(hidden.float(), targets).output.sum()
        # A cluster without a word in this batch has a gradient too: several processes
        # exchange all of them.
        return loss + 0.0 * sum(weight.sum() for weight in self.parameters())

    def log_probs(self, hidden: Tensor) -> Tensor:
        """As `Softmax.log_probs`."""
        return self.softmax.log_prob(hidden.float())


def make_softmax(kind: str, width: int, n_words: int, **settings: Any) -> SoftmaxModule:
    """Make a softmax by its registered name.

    kind (str): "full", "sampled", "adaptive", or what another package registered.
    width (int): width of one direction of the top layer.
    n_words (int): words of the vocabulary.
    settings (Any): further arguments of that softmax.
    RETURNS (SoftmaxModule): with random weights.
    RAISES (ValueError): EL073 for an unknown name or a setting that it does not have.
    """
    makers: Dict[str, Callable[..., SoftmaxModule]] = softmaxes.get_all()
    if not isinstance(kind, str) or kind not in makers:
        problem = f"there is no '{kind}', only {', '.join(sorted(makers))}"
        raise ValueError(Errors.EL073.format(problem=problem))
    try:
        return makers[kind](width, n_words, **settings)
    except (TypeError, ValueError, ArithmeticError, RuntimeError) as err:
        if str(err).startswith("[EL"):  # ours already
            raise
        raise ValueError(Errors.EL073.format(problem=err)) from err


def split_softmax(block: Dict[str, Any]) -> Tuple[str, Dict[str, Any]]:
    """block (Dict[str, Any]): [training.softmax]. RETURNS (Tuple[str, Dict[str, Any]]):
    its kind, and the other settings. RAISES (ValueError): EL073 for one that follows from
    model and text."""
    settings = dict(block)
    for key in ("width", "n_words"):
        if key in settings:
            raise ValueError(Errors.EL073.format(problem=f"'{key}' follows from model and text"))
    return settings.pop("kind", Softmax.kind), settings
