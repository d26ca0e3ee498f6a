"""Which words stand in both of two texts, and what a network is told of it (Weissenborn et al.
2017, section 3.1)."""

from typing import List, Sequence, Tuple

import torch
from spacy.tokens import Doc
from torch import Tensor, nn

from .places import Place

# Numbers that say of a token whether its word stands in both texts.
MATCH_WIDTH = 32
# Stands for what is no word: no form but "" has this hash.
_NO_WORD = 0


def find_matches(parts: Sequence[Tuple[Doc, Place, Place]]) -> List[bool]:
    """parts (Sequence[Tuple[Doc, Place, Place]]): docs, and where a first and a second text stand
    in each. RETURNS (List[bool]): for each token of all first texts, then for each of all second
    ones, whether it is a word of both, in upper or lower case."""
    first: List[bool] = []
    second: List[bool] = []
    for doc, *places in parts:
        A, B = (_get_words(doc, *place) for place in places)
        for words, others, matches in ((A, set(B), first), (B, set(A), second)):
            matches.extend(word != _NO_WORD and word in others for word in words)
    return first + second


def add_matches(
    embedding: nn.Embedding, matches: Sequence[bool], X: Tensor
) -> Tuple[Tensor, Tensor]:
    """Tell a network which words stand in both texts.

    embedding (nn.Embedding): of shape (2, n_match).
    matches (Sequence[bool]): see `find_matches`.
    X (Tensor): shape (n_tokens, nI).
    RETURNS (Tuple[Tensor, Tensor]): shape (n_tokens, n_match + nI), X last, as its last numbers may
        go past an encoder; and shape (n_tokens, n_match), what was added.
    """
    M = embedding(torch.tensor(matches, dtype=torch.long, device=X.device))
    return torch.cat([M, X], dim=1), M


def _get_words(doc: Doc, start: int, end: int) -> List[int]:
    """RETURNS (List[int]): Of each token the hash of its form in lower case."""
    return [_NO_WORD if t.is_punct or t.is_space else t.lower for t in doc[start:end]]
