"""BiDAF: where in a text the answer to a question starts and ends (Seo et al. 2017), with the
self-attention and the no-answer score of Clark & Gardner 2018, and the words in question of
Weissenborn et al. 2017."""

from typing import List, Optional, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..shared.attention import masked_softmax, pad, pool_weighted
from ..shared.bilstm import BiLSTM, EncoderWithPast
from ..shared.dropout import drop
from ..shared.wide_linear import map_parts
from ..shared.word_matches import MATCH_WIDTH, add_matches

# Hidden units of the no-answer score, as in Clark & Gardner 2018.
_NONE_WIDTH = 80


class Similarity(nn.Module):
    """How much each token of a text has to do with each of another one: a . w1 + b . w2 +
    (a * w3) . b (Seo et al. 2017, equation 1). width (int): of a token."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.of_a = nn.Linear(width, 1)
        self.of_b = nn.Linear(width, 1, bias=False)
        self.of_both = nn.Parameter(torch.empty(width).uniform_(-(width**-0.5), width**-0.5))

    def forward(self, A: Tensor, B: Tensor) -> Tensor:
        """A, B (Tensor): shapes (n, len_a, width) and (n, len_b, width). RETURNS (Tensor): shape
        (n, len_a, len_b)."""
        return self.of_a(A) + self.of_b(B).transpose(1, 2) + (A * self.of_both) @ B.transpose(1, 2)


class BiAttention(nn.Module):
    """A context that has read its question, in both directions (Seo et al. 2017, section 2.4).
    width, nO (int): of a token, before and after. n_more (int): what else is known of a token of
    the context."""

    def __init__(self, width: int, nO: int, n_more: int = 0) -> None:
        super().__init__()
        self.similarity = Similarity(width)
        self.merge = nn.Linear(4 * width + n_more, nO)

    def forward(
        self,
        C: Tensor,
        lengths_c: List[int],
        Q: Tensor,
        lengths_q: List[int],
        dropout: float,
        more: Sequence[Tensor] = (),
    ) -> Tensor:
        """C, Q (Tensor): contexts and questions, (n_tokens_c, width) and (n_tokens_q, width).
        lengths_c, lengths_q (List[int]): of n of each. more (Sequence[Tensor]): what else is known
        of the contexts, (n_tokens_c, n_more) together. RETURNS (Tensor): shape
        (n_tokens_c, nO)."""
        padded_c, mask_c = pad(C, lengths_c)  # (n, len_c, width)
        padded_q, mask_q = pad(Q, lengths_q)  # (n, len_q, width)
        both = mask_c.unsqueeze(2) & mask_q.unsqueeze(1)
        scores = self.similarity(padded_c, padded_q)  # (n, len_c, len_q)
        of_q = (masked_softmax(scores, both) @ padded_q)[mask_c]  # (n_tokens_c, width)
        lowest = torch.finfo(scores.dtype).min
        best = scores.masked_fill(~both, lowest).amax(dim=2)  # (n, len_c)
        of_c = pool_weighted(padded_c, best, mask_c)  # (n, width)
        of_c = of_c.repeat_interleave(mask_c.sum(dim=1), dim=0)  # (n_tokens_c, width)
        parts = [C, of_q, C * of_q, C * of_c, *more]
        return torch.relu(map_parts(self.merge, parts, dropout))


class SelfAttention(nn.Module):
    """A context that has read itself, each token all others, added to what it was (Clark &
    Gardner 2018, section 3.1). width (int): of a token."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.encode = BiLSTM(width, width)
        self.similarity = Similarity(width)
        self.merge = nn.Linear(3 * width, width)

    def forward(self, X: Tensor, lengths: List[int], dropout: float) -> Tensor:
        """X (Tensor): shape (n_tokens, width). lengths (List[int]): of the contexts. RETURNS
        (Tensor): as X."""
        own = self.encode(drop(X, dropout), lengths)  # (n_tokens, width)
        padded, mask = pad(own, lengths)
        longest = padded.shape[1]
        others = ~torch.eye(longest, dtype=torch.bool, device=X.device)
        both = mask.unsqueeze(2) & mask.unsqueeze(1) & others
        read = (masked_softmax(self.similarity(padded, padded), both) @ padded)[mask]  # as `own`
        return X + torch.relu(map_parts(self.merge, [own, read, own * read], dropout))


class BiDAF(nn.Module):
    """Questions and contexts -> scores of starts, of ends, and of there being no answer.

    nI (int): width of a token.
    n_past (int): its last numbers, which go past the first encoder.
    width (int): of all encodings, both directions together.
    self_attention (bool): whether contexts read themselves, too.
    word_match (bool): whether it is known which words stand in both texts.
    """

    def __init__(
        self, nI: int, n_past: int = 0, *, width: int, self_attention: bool, word_match: bool
    ) -> None:
        super().__init__()
        n_match = MATCH_WIDTH if word_match else 0
        self.match: Optional[nn.Embedding] = nn.Embedding(2, n_match) if word_match else None
        self.encode = EncoderWithPast(n_match + nI, n_past, width)
        self.attend = BiAttention(width + n_past, width, n_match)
        self.attend_self: Optional[SelfAttention] = SelfAttention(width) if self_attention else None
        self.read_start, self.start = BiLSTM(width, width), nn.Linear(width, 1)
        self.read_end, self.end = BiLSTM(2 * width, width), nn.Linear(width, 1)
        self.weigh = nn.Linear(width, 1)
        self.none = nn.Sequential(
            nn.Linear(3 * width, _NONE_WIDTH), nn.ReLU(), nn.Linear(_NONE_WIDTH, 1)
        )

    def forward(
        self, X: Tensor, lengths: List[int], matches: Sequence[bool], dropout: float = 0.0
    ) -> Tensor:
        """X (Tensor): shape (n_tokens, nI): all questions, then all contexts. lengths
        (List[int]): 2 * n of them, each at least 1. matches (Sequence[bool]): for each token
        whether its word stands in both texts; not read without `word_match`. dropout (float):
        before layers of weights.
        RETURNS (Tensor): shape (n_context_tokens + n, 2): start and end of each token of the
            contexts; then, for each context, the no-answer score and 0."""
        n = len(lengths) // 2
        n_asked = sum(lengths[:n])
        X, more = drop(X, dropout), []
        if self.match is not None:
            X, M = add_matches(self.match, matches, X)
            more = [M[n_asked:]]
        X = self.encode(X, lengths)
        Q, C = X[:n_asked], X[n_asked:]
        X = self.attend(C, lengths[n:], Q, lengths[:n], dropout, more)  # (n_context_tokens, width)
        lengths = lengths[n:]
        if self.attend_self is not None:
            X = self.attend_self(X, lengths, dropout)
        H = self.read_start(drop(X, dropout), lengths)
        E = self.read_end(drop(torch.cat([X, H], dim=1), dropout), lengths)
        scores = torch.cat([self.start(H), self.end(E)], dim=1)  # (n_context_tokens, 2)
        parts = (H, scores[:, :1]), (E, scores[:, 1:]), (X, self.weigh(X))
        pooled = [_pool(rows, weights, lengths) for rows, weights in parts]
        none = self.none(torch.cat(pooled, dim=1))  # (n, 1)
        return torch.cat([scores, F.pad(none, (0, 1))])


def _pool(X: Tensor, scores: Tensor, lengths: List[int]) -> Tensor:
    """RETURNS (Tensor): Means of sequences, weighted by the softmax of scores, (n, width)."""
    padded, mask = pad(X, lengths)
    return pool_weighted(padded, pad(scores, lengths)[0].squeeze(2), mask)
