"""The network of "elmo_coref": tokens -> mentions -> antecedents."""

from dataclasses import dataclass
from typing import List, NamedTuple, Optional, Tuple

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import Errors
from ...utils import require_least
from ..shared.bilstm import BiLSTM, require_even
from ..shared.dropout import drop
from .antecedent_scorer import AntecedentScorer
from .mention_facts import Ints, MentionFacts, find_texts
from .shared_words import find_words
from .span_choice import choose_spans, mask_scores
from .span_scorer import SpanScorer


@dataclass(frozen=True)
class RankerShape:
    """See `build_coref_span_ranker_v1`."""

    width: int
    depth: int
    max_span: int
    share: float
    n_antecedents: int
    word_match: bool = False

    def __post_init__(self) -> None:
        """RAISES (ValueError): EL192 for an odd width, EL012 for fewer than one, EL210 for a share
        out of range."""
        require_even("width", self.width)
        for key in ("depth", "max_span", "n_antecedents"):
            require_least(key, getattr(self, key), 1)
        if not 0 < self.share <= 1:
            raise ValueError(Errors.EL210.format(value=self.share))


class Candidates(NamedTuple):
    """What was kept of a doc.

    spans (Ints): shape (n_mentions, 2): first token, and the one behind the last, counted from the
        first token that was read.
    antecedents (Ints): shape (n_mentions, k): which of them may be antecedents; -1 for none.
    """

    spans: Ints
    antecedents: Ints


class SpanRanker(nn.Module):
    """End-to-end coreference by ranking spans (Lee et al. 2017, 2018).

    nI (int): width of a token.
    shape (RankerShape): widths and limits.
    """

    def __init__(self, nI: int, shape: RankerShape) -> None:
        super().__init__()
        self.encode = BiLSTM(nI, shape.width, shape.depth)
        # Heads are found in the vectors, too: the paper takes them from there alone.
        self.spans = SpanScorer(nI + shape.width, shape.width, shape.max_span)
        self.antecedents = AntecedentScorer(
            shape.width, shape.n_antecedents, word_match=shape.word_match
        )
        self.share = shape.share
        self.word_match = shape.word_match

    def forward(
        self, X: Tensor, lengths: List[int], facts: List[MentionFacts], dropout: float = 0.0
    ) -> Tuple[Tensor, List[Candidates]]:
        """X (Tensor): shape (n_tokens, nI), doc after doc. lengths (List[int]): of the docs, at
        least 1. facts (List[MentionFacts]): of the docs. dropout (float): on vectors, encodings and
        hidden layers.
        RETURNS (Tuple[Tensor, List[Candidates]]): all scores in one row: of each doc those of its
            spans, shape (n_tokens, max_span), then those of the links, shape (n_mentions, 1 + k);
            and what was kept of the docs."""
        X = drop(X, dropout)
        X = torch.cat([self.encode(X, lengths, dropout), X], dim=1)
        scores, candidates = [], []
        for rows, own in zip(X.split(lengths), facts):
            grid, links, kept = self._rank(rows, own, dropout)
            scores += [grid.flatten(), links.flatten()]
            candidates.append(kept)
        return torch.cat(scores), candidates

    def _rank(
        self, X: Tensor, facts: MentionFacts, dropout: float
    ) -> Tuple[Tensor, Tensor, Candidates]:
        roots = None if facts.roots is None else _send(facts.roots, X)
        grid = self.spans(X, roots, dropout)
        masked = mask_scores(grid.detach().cpu().numpy(), facts)
        starts, ends = choose_spans(masked, self.share)
        texts = _send(find_texts(facts.words, starts, ends), X)
        first, last = _send(starts, X), _send(ends - 1, X)
        spans = self.spans.represent(X, first, last, roots)
        scores = grid[first, last - first]
        words = find_words(facts, starts, ends) if self.word_match else None
        links, antecedents = self.antecedents(spans, scores, texts, dropout, words)
        kept = Candidates(np.stack([starts, ends], axis=1), antecedents.cpu().numpy())
        return grid, links, kept


def _send(numbers: Optional[Ints], X: Tensor) -> Tensor:
    return torch.as_tensor(numbers, device=X.device)
