"""The torch network of "elmo_coref": token vectors -> mentions -> antecedents (Lee et al. 2017,
2018)."""

from dataclasses import dataclass
from typing import List, NamedTuple, Optional, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...utils import require_least, require_valid
from ..shared.bilstm import BiLSTM, require_even
from ..shared.torch_layer import drop
from .spans import (
    N_KINDS,
    Ints,
    MentionFacts,
    MentionWords,
    choose_spans,
    compare_words,
    find_texts,
    find_words,
    mask_scores,
)

# The attention of heads is bounded, so that exponentials can be summed span after span.
_BOUND = 5.0
# Mentions whose pairs are scored at a time.
_BLOCK = 256
# Distances 1, 2, 3, 4, 5-7, 8-15, 16-31, 32-63 and more mentions, as in Lee et al. 2017.
_BUCKETS = (2, 3, 4, 5, 8, 16, 32, 64)


@dataclass(frozen=True)
class RankerShape:
    """See `build_coref_span_ranker_v1`. A dataclass: Thinc would save other attributes."""

    width: int
    depth: int
    max_span: int
    share: float
    n_antecedents: int
    word_match: bool
    max_train_sentences: int = 40

    def __post_init__(self) -> None:
        require_even("width", self.width)
        for key in ("depth", "max_span", "n_antecedents", "max_train_sentences"):
            require_least(key, getattr(self, key), 1)
        expected = "spans to keep, of the number of tokens, in (0, 1], such as 0.3"
        require_valid(0 < self.share <= 1, "share", self.share, expected)


class Candidates(NamedTuple):
    """Mentions that were kept, counted from the first token that was read: start and end, shape
    (n_mentions, 2); and which may be antecedents, shape (n_mentions, k), -1 for none."""

    spans: Ints
    antecedents: Ints


class SpanRanker(nn.Module):
    """End-to-end coreference by ranking spans."""

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
        """X (Tensor): shape (n_tokens, nI), docs of lengths of at least 1. facts
        (List[MentionFacts]): of the docs. RETURNS (Tuple[Tensor, List[Candidates]]): all scores
        in one row: of each doc those of its spans, shape (n_tokens, max_span), then those of the
        links, shape (n_mentions, 1 + k); and the mentions of each doc."""
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
        roots = None if facts.roots is None else torch.as_tensor(facts.roots, device=X.device)
        grid = self.spans(X, roots, dropout)
        masked = mask_scores(grid.detach().cpu().numpy(), facts)
        starts, ends = choose_spans(masked, self.share)
        texts = torch.as_tensor(find_texts(facts.words, starts, ends), device=X.device)
        first = torch.as_tensor(starts, device=X.device)
        last = torch.as_tensor(ends - 1, device=X.device)
        spans = self.spans.represent(X, first, last, roots)
        words = find_words(facts, starts, ends) if self.word_match else None
        links, antecedents = self.antecedents(
            spans, grid[first, last - first], texts, dropout, words
        )
        kept = Candidates(np.stack([starts, ends], axis=1), antecedents.cpu().numpy())
        return grid, links, kept


class SpanScorer(nn.Module):
    """Score spans as mentions (Lee et al. 2017, section 4). A span is represented by its first and
    last token, its head and its length; the head is a mean of its tokens by learned attention.
    With a parse, the attention of the span's root gets a learned bonus, which is 0 unless docs
    with a parse were trained on."""

    def __init__(self, nI: int, width: int, max_span: int) -> None:
        super().__init__()
        # Linear maps of start, end and head, computed once for each token: no array has all spans
        # times the width of their parts.
        self.parts = nn.Linear(nI, 3 * width)
        self.attention = nn.Linear(nI, 1)
        self.root_bonus = nn.Parameter(torch.zeros(1))
        self.lengths = nn.Embedding(max_span, width)
        self.hidden = nn.Linear(width, width)
        self.output = nn.Linear(width, 1)
        self.max_span = max_span

    def forward(self, X: Tensor, roots: Optional[Tensor], dropout: float) -> Tensor:
        """Tokens of shape (n_tokens, nI) -> scores before the sigmoid, (n_tokens, max_span), by
        first token and number of tokens less 1; 0 for spans that end after the last token."""
        starts, ends, heads, weights = self._read_tokens(X)
        # Sums over the spans with one token less.
        total, norm = torch.zeros_like(heads), torch.zeros_like(weights)
        scores = []
        for w in range(min(self.max_span, len(X))):
            n = len(X) - w
            total = total[:n] + (weights * heads)[w:]
            norm = norm[:n] + weights[w:]
            root = None if roots is None else roots[:n, w]
            head = self._find_head(total, norm, heads, weights, root)
            spans = torch.relu(starts[:n] + ends[w:] + head + self.lengths.weight[w])
            hidden = torch.relu(self.hidden(drop(spans, dropout)))
            scores.append(F.pad(self.output(drop(hidden, dropout)).squeeze(1), (0, w)))
        grid = torch.stack(scores, dim=1)
        return F.pad(grid, (0, self.max_span - grid.shape[1]))  # (n_tokens, max_span)

    def represent(self, X: Tensor, first: Tensor, last: Tensor, roots: Optional[Tensor]) -> Tensor:
        """The spans from some first to last tokens, shape (n_spans,), as (n_spans, width)."""
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


class AntecedentScorer(nn.Module):
    """Score pairs of mentions, coarse to fine (Lee et al. 2018, section 4): all by a bilinear form;
    the best of each mention by a network with one hidden layer, which also reads their distance,
    whether their texts are the same, and, with `word_match`, which words they share."""

    def __init__(self, width: int, n_antecedents: int, *, word_match: bool = False) -> None:
        super().__init__()
        self.coarse = nn.Linear(width, width, bias=False)
        self.alike_bonus = nn.Parameter(torch.zeros(1))
        self.mention = nn.Linear(width, width)
        self.antecedent = nn.Linear(width, width, bias=False)
        self.product = nn.Linear(width, width, bias=False)
        self.distances = nn.Embedding(len(_BUCKETS) + 1, width)
        self.alike = nn.Embedding(2, width)
        self.output = nn.Linear(width, 1)
        if word_match:
            self.shared = nn.Embedding(N_KINDS, width)
            self.shared_bonus = nn.Parameter(torch.zeros(N_KINDS))
        self.n_antecedents = n_antecedents

    def forward(
        self,
        mentions: Tensor,
        scores: Tensor,
        texts: Tensor,
        dropout: float,
        words: Optional[MentionWords] = None,
    ) -> Tuple[Tensor, Tensor]:
        """mentions (Tensor): shape (n_mentions, width), in the order of the text. scores, texts
        (Tensor): shape (n_mentions,), of single mentions, and of `find_texts`.
        RETURNS (Tuple[Tensor, Tensor]): scores of no antecedent, always 0, and of the antecedents,
            shape (n_mentions, 1 + k), k at most `n_antecedents`; and which these are, shape
            (n_mentions, k). Where there are fewer, -inf and -1."""
        links, chosen = [], []
        for start in range(0, len(mentions), _BLOCK):
            rows = torch.arange(start, min(start + _BLOCK, len(mentions)), device=mentions.device)
            kinds = None
            if words is not None:
                kinds = compare_words(words, start, start + len(rows)).to(mentions.device)
            with torch.no_grad():
                found = self._choose(rows, mentions, scores, texts, kinds)
            pairs = self._score_pairs(
                rows, found.clamp(min=0), mentions, scores, texts, kinds, dropout
            )
            links.append(F.pad(pairs.masked_fill(found < 0, float("-inf")), (1, 0)))
            chosen.append(found)
        return torch.cat(links), torch.cat(chosen)

    def _choose(
        self,
        rows: Tensor,
        mentions: Tensor,
        scores: Tensor,
        texts: Tensor,
        kinds: Optional[Tensor],
    ) -> Tensor:
        """The best antecedents of some mentions, shape (n_rows, k). kinds (Optional[Tensor]): see
        `compare_words`."""
        pairs = self.coarse(mentions[rows]) @ mentions.T + scores  # (n_rows, n_mentions)
        pairs = pairs + self.alike_bonus * (texts[rows].unsqueeze(1) == texts)
        if kinds is not None:
            pairs = pairs + self.shared_bonus[kinds]
        is_before = torch.arange(len(mentions), device=rows.device) < rows.unsqueeze(1)
        k = min(self.n_antecedents, len(mentions) - 1)
        best = pairs.masked_fill(~is_before, float("-inf")).topk(k, dim=1)
        return best.indices.masked_fill(best.values == float("-inf"), -1)

    def _score_pairs(
        self,
        rows: Tensor,
        chosen: Tensor,
        mentions: Tensor,
        scores: Tensor,
        texts: Tensor,
        kinds: Optional[Tensor],
        dropout: float,
    ) -> Tensor:
        X, others = mentions[rows].unsqueeze(1), mentions[chosen]  # (n_rows, k, width)
        alike = texts[rows].unsqueeze(1) == texts[chosen]
        coarse = (self.coarse(X) * others).sum(dim=2) + self.alike_bonus * alike
        buckets = torch.tensor(_BUCKETS, device=rows.device)
        distances = torch.bucketize(rows.unsqueeze(1) - chosen, buckets, right=True)
        hidden = self.mention(X) + self.antecedent(mentions)[chosen] + self.product(X * others)
        hidden = hidden + self.distances(distances) + self.alike(alike.long())
        if kinds is not None:
            kinds = kinds.gather(1, chosen)  # (n_rows, k)
            coarse, hidden = coarse + self.shared_bonus[kinds], hidden + self.shared(kinds)
        fine = self.output(drop(torch.relu(hidden), dropout)).squeeze(2)
        return scores[rows].unsqueeze(1) + scores[chosen] + coarse + fine  # (n_rows, k)
