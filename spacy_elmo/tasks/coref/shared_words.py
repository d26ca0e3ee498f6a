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

    table (Tensor): shape (n_mentions, n_words), sparse: 1 where a mention has a word.
    n_own (Tensor): shape (n_mentions,): different words of each mention.
    """

    table: Tensor
    n_own: Tensor


def find_words(facts: MentionFacts, starts: Ints, ends: Ints) -> MentionWords:
    """facts (MentionFacts): of a doc. starts, ends (Ints): shape (n_mentions,): of its mentions.
    RETURNS (MentionWords): of them, on the CPU: not every device has sparse products."""
    distinct, numbers = np.unique(facts.words, return_inverse=True)
    words = [np.unique(numbers[s:e][facts.is_content[s:e]]) for s, e in zip(starts, ends)]
    n_own = np.array([len(own) for own in words])
    places = np.stack([np.repeat(np.arange(len(words)), n_own), np.concatenate(words)])
    table = torch.sparse_coo_tensor(
        torch.as_tensor(places, dtype=torch.long),
        torch.ones(places.shape[1]),
        (len(words), len(distinct)),
        # Said either way, as torch warns otherwise.
        check_invariants=True,
    )
    return MentionWords(table.coalesce(), torch.as_tensor(n_own))


def compare_words(own: MentionWords, start: int, end: int) -> Tensor:
    """own (MentionWords): of all mentions. start, end (int): some mentions, the end not included.
    RETURNS (Tensor): shape (n_rows, n_mentions): what each of some shares with each of all, from 0
        to `N_KINDS` - 1; mentions without content words share none."""
    mentions, words = own.table.indices()
    is_row = (mentions >= start) & (mentions < end)
    columns = own.table.values().new_zeros(own.table.shape[1], end - start)
    columns[words[is_row], mentions[is_row] - start] = 1  # (n_words, n_rows)
    n_shared = torch.sparse.mm(own.table, columns).T  # (n_rows, n_mentions)
    has_all_own = n_shared == own.n_own[start:end].unsqueeze(1)
    has_all_other = n_shared == own.n_own
    kinds = 1 + (has_all_own | has_all_other).long() + (has_all_own & has_all_other).long()
    return kinds * (n_shared > 0)
