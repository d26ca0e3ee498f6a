"""Mentions and their antecedents, coarse to fine (Lee et al. 2018, section 4)."""

from typing import Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..shared.dropout import drop
from .shared_words import N_KINDS, MentionWords, compare_words

# Mentions at a time: of a long document, never all pairs.
_BLOCK = 256
# Distances 1, 2, 3, 4, 5-7, 8-15, 16-31, 32-63 and more mentions, as in Lee et al. 2017.
_BUCKETS = (2, 3, 4, 5, 8, 16, 32, 64)


class AntecedentScorer(nn.Module):
    """Pairs of mentions are scored by a cheap bilinear form; the best of each mention by a network
    with one hidden layer, which also reads their distance, whether they are written alike, and,
    with `word_match`, which words they share.

    width (int): of a mention.
    n_antecedents (int): that the cheap scores leave to a mention.
    word_match (bool): whether it is known which words two mentions share.
    """

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
        """mentions (Tensor): shape (n_mentions, width), in the order of the text. scores (Tensor):
        of them alone, shape (n_mentions,). texts (Tensor): see `find_texts`. dropout (float): in
        the hidden layers. words (Optional[MentionWords]): of the mentions, with `word_match`.
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
        """kinds (Optional[Tensor]): see `compare_words`. RETURNS (Tensor): the best antecedents of
        some mentions, shape (n_rows, k)."""
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
        hidden = torch.relu(hidden)
        fine = self.output(drop(hidden, dropout)).squeeze(2)
        return scores[rows].unsqueeze(1) + scores[chosen] + coarse + fine  # (n_rows, k)
