"""Which words two mentions share."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .mention_facts import Ints, MentionFacts

# None, some, all of one of them, all of both.
N_KINDS = 4


class MentionWords(NamedTuple):
    """The content words of some mentions.

    mentions, words (Tensor): shape (n,): of each word of each mention the number of the mention, in
        ascending order, and that of the word; one that stands twice counts once.
    n_words (Tensor): shape (n_mentions,): words of each mention.
    n_distinct (int): words of all.
    """

    mentions: Tensor
    words: Tensor
    n_words: Tensor
    n_distinct: int


def find_words(facts: MentionFacts, starts: Ints, ends: Ints, device: torch.device) -> MentionWords:
    """facts (MentionFacts): of a doc. starts, ends (Ints): shape (n_mentions,): of its mentions.
    RETURNS (MentionWords): of them."""
    _, numbers = np.unique(facts.words, return_inverse=True)
    words = [np.unique(numbers[s:e][facts.is_content[s:e]]) for s, e in zip(starts, ends)]
    n_words = np.array([len(own) for own in words])
    flat = np.concatenate(words).astype("int64")
    mentions, n_own = np.repeat(np.arange(len(words)), n_words), torch.as_tensor(n_words)
    n_distinct = int(numbers.max()) + 1
    return MentionWords(
        torch.as_tensor(mentions, device=device),
        torch.as_tensor(flat, device=device),
        n_own.to(device),
        n_distinct,
    )


def compare_words(own: MentionWords, start: int, end: int) -> Tensor:
    """own (MentionWords): of all mentions. start, end (int): some mentions, the end not included.
    RETURNS (Tensor): shape (n_rows, n_mentions): what each of some shares with each of all, from 0
        to `N_KINDS` - 1; mentions without content words share none."""
    n_mentions, n_rows, device = len(own.n_words), end - start, own.words.device
    table = torch.sparse_coo_tensor(
        torch.stack([own.mentions, own.words]),
        torch.ones(len(own.words), device=device),
        (n_mentions, own.n_distinct),
        is_coalesced=True,
        check_invariants=False,
    )
    is_row = (own.mentions >= start) & (own.mentions < end)
    rows = torch.zeros(own.n_distinct, n_rows, device=device)
    rows[own.words[is_row], own.mentions[is_row] - start] = 1
    n_shared = torch.sparse.mm(table, rows).T  # (n_rows, n_mentions)
    n_own, n_other = own.n_words[start:end].unsqueeze(1), own.n_words
    has_all_own, has_all_other = n_shared == n_own, n_shared == n_other
    kinds = 1 + (has_all_own | has_all_other).long() + (has_all_own & has_all_other).long()
    return kinds * (n_shared > 0)
