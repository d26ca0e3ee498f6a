"""Exact perplexity: both directions apart, over the whole vocabulary."""

import math
from dataclasses import dataclass
from typing import Iterable, Iterator, List, Optional, Sequence

import torch
from torch import Tensor

from ..bilm.batch import plan_batches
from ..bilm.lstm import BiLMState
from .objective import LanguageModel
from .readings import LMBatch, make_lm_batch, make_stream_batches
from .vocabulary import UNK_WORD, Vocabulary

# Rows whose probabilities over the vocabulary are held at a time.
_ROWS = 512


@dataclass
class Perplexity:
    """Sums over a text.

    forward (float): negative log-likelihood of the forward direction, nats.
    backward (float): the same of the backward direction.
    n_targets (int): predictions of each direction: tokens, and one boundary for each
        sequence.
    n_sequences (int): sequences.
    n_unknown (int): tokens outside the vocabulary, predicted as `<UNK>`.
    """

    forward: float = 0.0
    backward: float = 0.0
    n_targets: int = 0
    n_sequences: int = 0
    n_unknown: int = 0

    @property
    def perplexities(self) -> List[float]:
        """RETURNS (List[float]): Forward, backward, and their geometric mean."""
        n = max(1, self.n_targets)
        nats = [self.forward / n, self.backward / n, (self.forward + self.backward) / (2 * n)]
        return [math.exp(min(value, 700.0)) for value in nats]


class Scorer:
    """Exact log-probabilities in a vocabulary, the model's own or a smaller one.

    model (LanguageModel): the model; put into evaluation mode.
    vocabulary (Vocabulary): what its softmax predicts.
    restrict (Optional[Vocabulary]): words to score with, all in `vocabulary`. The rest
        counts as `<UNK>`: its probability is added to that of `<UNK>`.
    """

    def __init__(
        self,
        model: LanguageModel,
        vocabulary: Vocabulary,
        restrict: Optional[Vocabulary] = None,
    ) -> None:
        self.model = model.eval()
        self.vocabulary = restrict or vocabulary
        self._rows: Optional[Tensor] = None
        if restrict is not None and restrict != vocabulary:
            self._rows = torch.from_numpy(vocabulary.encode(restrict.words))
            outside = torch.ones(len(vocabulary), dtype=torch.bool)
            outside[self._rows] = False
            self._outside = torch.nonzero(outside)[:, 0].to(model.bilm.device)
            self._rows = self._rows.to(model.bilm.device)
        self._unknown = self.vocabulary.ids[UNK_WORD]

    def score(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """hidden (Tensor): top layer of a direction, shape (n_rows, width // 2).
        targets (Tensor): rows of `self.vocabulary`, int64, shape (n_rows,).
        RETURNS (Tensor): log-probabilities in nats, shape (n_rows,), float64."""
        parts = zip(hidden.split(_ROWS), targets.split(_ROWS))
        return torch.cat([self._score(h, t).double() for h, t in parts])

    def _score(self, hidden: Tensor, targets: Tensor) -> Tensor:
        log_probs = self.model.softmax.log_probs(hidden)
        if self._rows is None:
            return log_probs.gather(1, targets[:, None])[:, 0]
        scores = log_probs.gather(1, self._rows[targets][:, None])[:, 0]
        unknown = torch.nonzero(targets == self._unknown)[:, 0]
        if len(unknown) and len(self._outside):
            rest = torch.logsumexp(log_probs[unknown][:, self._outside], dim=1)
            scores[unknown] = torch.logaddexp(scores[unknown], rest)
        return scores


@torch.no_grad()
def measure(
    scorer: Scorer,
    sequences: Sequence[Sequence[str]],
    *,
    stream: bool = False,
    batch_tokens: int,
) -> Perplexity:
    """Score a text.

    scorer (Scorer): the model and the words to score.
    sequences (Sequence[Sequence[str]]): words, at least one in each.
    stream (bool): whether the state is carried from one sequence to the next, the
        backward direction's from the next to the one before.
    batch_tokens (int): tokens of a pass.
    RETURNS (Perplexity): sums over the text; they do not depend on `batch_tokens`.
    """
    vocabulary = scorer.vocabulary
    result = Perplexity(
        n_sequences=len(sequences),
        n_unknown=sum(word not in vocabulary.ids for words in sequences for word in words),
    )
    state: Optional[BiLMState] = None
    for batch in _batches(sequences, vocabulary, stream, batch_tokens):
        outputs, after = scorer.model.read(batch, state)
        state = after if stream else None
        scores = [
            float(scorer.score(hidden, torch.from_numpy(r.targets).to(hidden.device)).sum())
            for hidden, r in zip(outputs, (batch.forward, batch.backward))
        ]
        result.forward -= scores[0]
        result.backward -= scores[1]
        result.n_targets += batch.n_targets
    return result


def _batches(
    sequences: Sequence[Sequence[str]], vocabulary: Vocabulary, stream: bool, batch_tokens: int
) -> Iterator[LMBatch]:
    if stream:
        length = sum(len(words) + 1 for words in sequences)
        yield from make_stream_batches([sequences], batch_tokens, length, vocabulary)
        return
    groups: Iterable[List[int]] = plan_batches([len(s) for s in sequences], batch_tokens)
    for group in groups:
        yield make_lm_batch([sequences[i] for i in group], vocabulary)
