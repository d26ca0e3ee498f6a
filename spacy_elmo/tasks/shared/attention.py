"""Attention and pooling over padded sequences, in plain torch. What is padded never counts: each
result is that of its sequence alone."""

from typing import List, Tuple

import torch
from torch import Tensor

# Weights of attention that are computed at a time, 16 MB: one long text has the square of its
# tokens.
_MOST_SCORES = 1 << 22


def pad(X: Tensor, lengths: List[int]) -> Tuple[Tensor, Tensor]:
    """X (Tensor): shape (n_tokens, width), sequence after sequence. lengths (List[int]): at least
    one; any may be 0.
    RETURNS (Tuple[Tensor, Tensor]): shape (n_seqs, longest, width), and which rows are tokens,
        shape (n_seqs, longest)."""
    longest = max(lengths)
    positions = torch.arange(longest, device=X.device)
    mask = positions < torch.tensor(lengths, device=X.device).unsqueeze(1)
    # All rows at once: torch's `pad_sequence` goes back through a copy of all for each sequence.
    rows = X.new_zeros(len(lengths) * longest, X.shape[1])
    padded = rows.index_copy(0, mask.flatten().nonzero().squeeze(1), X)
    return padded.view(len(lengths), longest, X.shape[1]), mask


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """scores (Tensor): any shape. mask (Tensor): the same, True for what counts. RETURNS (Tensor):
    weights that sum to 1 over the last axis, or to 0 where nothing counts."""
    lowest = torch.finfo(scores.dtype).min
    return torch.softmax(scores.masked_fill(~mask, lowest), dim=-1) * mask


def align(A: Tensor, B: Tensor, mask_a: Tensor, mask_b: Tensor) -> Tuple[Tensor, Tensor]:
    """Read each of two sequences by the attention of the other's tokens, whose weights are the
    products of their rows (Chen et al. 2017, section 3.2; McCann et al. 2017, section 5).

    A, B (Tensor): shapes (n_seqs, len_a, width) and (n_seqs, len_b, width).
    mask_a, mask_b (Tensor): which rows are tokens.
    RETURNS (Tuple[Tensor, Tensor]): for each token of A a mean of B's, of A's shape; for each
        token of B a mean of A's.
    """
    return attend(A, B, mask_a, mask_b), attend(B, A, mask_b, mask_a)


def attend(A: Tensor, B: Tensor, mask_a: Tensor, mask_b: Tensor) -> Tensor:
    """As `align`, for the tokens of A alone. RETURNS (Tensor): A's shape."""
    n = max(1, _MOST_SCORES // (B.shape[0] * B.shape[1]))
    read = [_attend(*part, B, mask_b) for part in zip(A.split(n, 1), mask_a.split(n, 1))]
    return read[0] if len(read) == 1 else torch.cat(read, dim=1)


def _attend(A: Tensor, mask_a: Tensor, B: Tensor, mask_b: Tensor) -> Tensor:
    scores = A @ B.transpose(1, 2)  # (n_seqs, len_a, len_b)
    return masked_softmax(scores, mask_a.unsqueeze(2) & mask_b.unsqueeze(1)) @ B


def pool_mean(X: Tensor, mask: Tensor) -> Tensor:
    """X (Tensor): shape (n_seqs, longest, width). mask (Tensor): which rows are tokens. RETURNS
    (Tensor): shape (n_seqs, width); zeros for no tokens."""
    counts = mask.sum(dim=1, keepdim=True).clamp(min=1)
    return (X * mask.unsqueeze(2)).sum(dim=1) / counts


def pool_max(X: Tensor, mask: Tensor) -> Tensor:
    """As `pool_mean`, the largest number of each column."""
    lowest = torch.finfo(X.dtype).min
    largest = X.masked_fill(~mask.unsqueeze(2), lowest).amax(dim=1)
    return largest * mask.any(dim=1, keepdim=True)


def pool_min(X: Tensor, mask: Tensor) -> Tensor:
    """As `pool_mean`, the smallest number of each column."""
    return -pool_max(-X, mask)


def pool_weighted(X: Tensor, scores: Tensor, mask: Tensor) -> Tensor:
    """As `pool_mean`, with weights. scores (Tensor): shape (n_seqs, longest), before the
    softmax."""
    return (masked_softmax(scores, mask).unsqueeze(1) @ X).squeeze(1)
