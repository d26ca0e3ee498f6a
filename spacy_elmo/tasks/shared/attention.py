"""Attention, pooling and linear layers over padded sequences. Padding never affects a result."""

from typing import Iterator, List, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...utils import group_by_length
from .torch_layer import drop

# Padded tokens that a network reads at a time: attention and encoders stay below 100 MB.
MOST_PADDED = 8192
# Weights of attention that are computed at a time, 16 MB: they grow with the square of a text.
_MOST_SCORES = 1 << 22


def plan_padded(lengths: Sequence[int]) -> Iterator[List[int]]:
    """Group sequences so that each group, padded to its longest one, is within `MOST_PADDED`: all
    in order if they fit, otherwise those of similar length. Empty sequences are left out, and
    one that is too long is a group by itself. Yields their indices."""
    found = [i for i, length in enumerate(lengths) if length]

    def fits(n: int, longest: int) -> bool:
        return n * longest <= MOST_PADDED

    if found and fits(len(found), max(lengths)):
        yield found
        return
    for group in group_by_length([lengths[i] for i in found], fits):
        yield [found[k] for k in group]


def pad(X: Tensor, lengths: List[int]) -> Tuple[Tensor, Tensor]:
    """Pad sequences of some lengths, X of shape (n_tokens, width), to shape (n_seqs, longest,
    width). Returns also which rows are tokens, shape (n_seqs, longest)."""
    longest = max(lengths)
    positions = torch.arange(longest, device=X.device)
    mask = positions < torch.tensor(lengths, device=X.device).unsqueeze(1)
    # All rows at once: backward through torch's `pad_sequence` copies all for each sequence.
    rows = X.new_zeros(len(lengths) * longest, X.shape[1])
    padded = rows.index_copy(0, mask.flatten().nonzero().squeeze(1), X)
    return padded.view(len(lengths), longest, X.shape[1]), mask


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis where mask is True; zeros elsewhere, or if it never is."""
    lowest = torch.finfo(scores.dtype).min
    return torch.softmax(scores.masked_fill(~mask, lowest), dim=-1) * mask


def attend(A: Tensor, B: Tensor, mask_a: Tensor, mask_b: Tensor) -> Tensor:
    """For each token of A, shape (n_seqs, len_a, width), a mean of the tokens of B, (n_seqs, len_b,
    width), weighted by the products of their vectors (Chen et al. 2017, section 3.2; McCann et
    al. 2017, section 5). Masks are True for tokens."""
    n = max(1, _MOST_SCORES // (B.shape[0] * B.shape[1]))
    means = []
    for rows, mask in zip(A.split(n, 1), mask_a.split(n, 1)):
        scores = rows @ B.transpose(1, 2)  # (n_seqs, n, len_b)
        means.append(masked_softmax(scores, mask.unsqueeze(2) & mask_b.unsqueeze(1)) @ B)
    return means[0] if len(means) == 1 else torch.cat(means, dim=1)


def pool_mean(X: Tensor, mask: Tensor) -> Tensor:
    """Shape (n_seqs, longest, width) -> (n_seqs, width); zeros for no tokens."""
    counts = mask.sum(dim=1, keepdim=True).clamp(min=1)
    return (X * mask.unsqueeze(2)).sum(dim=1) / counts


def pool_max(X: Tensor, mask: Tensor) -> Tensor:
    """The largest number of each column; see `pool_mean`."""
    lowest = torch.finfo(X.dtype).min
    largest = X.masked_fill(~mask.unsqueeze(2), lowest).amax(dim=1)
    return largest * mask.any(dim=1, keepdim=True)


def pool_weighted(X: Tensor, scores: Tensor, mask: Tensor) -> Tensor:
    """A mean weighted by the softmax of scores of shape (n_seqs, longest)."""
    return (masked_softmax(scores, mask).unsqueeze(1) @ X).squeeze(1)


def map_parts(linear: nn.Linear, parts: Sequence[Tensor], dropout: float) -> Tensor:
    """`linear(drop(torch.cat(parts, -1), dropout))` without a copy of all parts, which have shapes
    (..., n)."""
    weights = linear.weight.split([part.shape[-1] for part in parts], dim=1)
    first, *others = (
        F.linear(drop(part, dropout), weight) for part, weight in zip(parts, weights, strict=True)
    )
    return sum(others, first + linear.bias)
