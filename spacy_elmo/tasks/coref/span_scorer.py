"""Spans as mentions: what they look like, and how likely each is (Lee et al. 2017, section 4)."""

from typing import Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..shared.dropout import drop

# Attention is bounded, so that its exponentials can be summed span after span.
_BOUND = 5.0


class SpanScorer(nn.Module):
    """A span is its first and last token, its head and its length. The head is a mean of its
    tokens by learned attention. Where there is a parse, the attention of the span's root gets a
    learned bonus, which is 0 unless docs with a parse were trained on.

    nI (int): width of a token.
    width (int): of a span.
    max_span (int): tokens of the longest one.
    """

    def __init__(self, nI: int, width: int, max_span: int) -> None:
        super().__init__()
        # Linear maps of start, end and head, made once for each token: no array has all spans
        # times the width of their parts.
        self.parts = nn.Linear(nI, 3 * width)
        self.attention = nn.Linear(nI, 1)
        self.root_bonus = nn.Parameter(torch.zeros(1))
        self.lengths = nn.Embedding(max_span, width)
        self.hidden = nn.Linear(width, width)
        self.output = nn.Linear(width, 1)
        self.max_span = max_span

    def forward(self, X: Tensor, roots: Optional[Tensor], dropout: float) -> Tensor:
        """X (Tensor): shape (n_tokens, nI), at least one. roots (Optional[Tensor]): see
        `MentionFacts`. dropout (float): in the hidden layers.
        RETURNS (Tensor): shape (n_tokens, max_span): scores of the spans by first token and number
            of tokens less 1; those that end behind the last token have 0."""
        starts, ends, heads, weights = self._read_tokens(X)
        # The sums of the spans with one token less.
        total, norm = torch.zeros_like(heads), torch.zeros_like(weights)
        scores = []
        for w in range(min(self.max_span, len(X))):
            n = len(X) - w
            total = total[:n] + (weights * heads)[w:]
            norm = norm[:n] + weights[w:]
            root = None if roots is None else roots[:n, w]
            head = self._find_head(total, norm, heads, weights, root)
            spans = torch.relu(starts[:n] + ends[w:] + head + self.lengths.weight[w])
            scores.append(F.pad(self.score(spans, dropout), (0, w)))
        grid = torch.stack(scores, dim=1)
        return F.pad(grid, (0, self.max_span - grid.shape[1]))  # (n_tokens, max_span)

    def score(self, spans: Tensor, dropout: float) -> Tensor:
        """spans (Tensor): shape (n_spans, width). RETURNS (Tensor): shape (n_spans,): before the
        sigmoid."""
        hidden = torch.relu(self.hidden(drop(spans, dropout)))
        return self.output(drop(hidden, dropout)).squeeze(1)

    def represent(self, X: Tensor, first: Tensor, last: Tensor, roots: Optional[Tensor]) -> Tensor:
        """X (Tensor): shape (n_tokens, nI). first, last (Tensor): tokens of some spans, shape
        (n_spans,). RETURNS (Tensor): shape (n_spans, width), as `forward` has them."""
        starts, ends, heads, weights = self._read_tokens(X)
        columns = first.unsqueeze(1) + torch.arange(self.max_span, device=X.device)
        inside = (columns <= last.unsqueeze(1)).unsqueeze(2)
        columns = columns.clamp(max=len(X) - 1)
        own = weights[columns] * inside  # (n_spans, max_span, 1)
        total = (own.transpose(1, 2) @ heads[columns]).squeeze(1)
        root = None if roots is None else roots[first, last - first]
        head = self._find_head(total, own.sum(dim=1), heads, weights, root)
        return torch.relu(starts[first] + ends[last] + head + self.lengths(last - first))

    def _read_tokens(self, X: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
        starts, ends, heads = self.parts(X).chunk(3, dim=1)
        return starts, ends, heads, torch.exp(_BOUND * torch.tanh(self.attention(X)))

    def _find_head(
        self, total: Tensor, norm: Tensor, heads: Tensor, weights: Tensor, root: Optional[Tensor]
    ) -> Tensor:
        if root is None:
            return total / norm
        bonus = torch.expm1(_BOUND * torch.tanh(self.root_bonus)) * weights[root]
        return (total + bonus * heads[root]) / (norm + bonus)
