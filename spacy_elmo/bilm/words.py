"""Distinct words -> what a biLM's input reads, words of like length together."""

from typing import List, Tuple

import numpy as np
import torch
from torch import Tensor

from .characters import count_bytes, encode_words
from .config import N_WORD_MARKERS
from .model import BiLM

# Words per pass through the convolutions, so that their memory is bounded.
_CNN_WORDS = 1024


def encode_distinct(bilm: BiLM, words: List[str]) -> Tensor:
    """Compute word vectors.

    bilm (BiLM): the network.
    words (List[str]): distinct words.
    RETURNS (Tensor): shape (n_words, width // 2), in the order of the words.
    """
    inputs, back = make_inputs(bilm, words)
    return torch.cat([bilm.encode(part) for part in inputs])[back]


def make_inputs(
    bilm: BiLM, words: List[str], n_words: int = _CNN_WORDS
) -> Tuple[List[Tensor], Tensor]:
    """Write words as `BiLM.encode` reads them, in parts; the character axis of each part
    is cropped to its words.

    bilm (BiLM): the network.
    words (List[str]): distinct words.
    n_words (int): words of a part.
    RETURNS (Tuple[List[Tensor], Tensor]): the parts, and for each word its row in their
        results put end to end, shape (n_words,).
    """
    config, device = bilm.config, bilm.device
    if config.input != "characters":
        return [bilm.word_table.find(words).to(device)], torch.arange(len(words), device=device)
    n_bytes = np.array([count_bytes(word) for word in words], dtype=np.int64)
    order = np.argsort(n_bytes, kind="stable")
    parts: List[Tensor] = []
    for start in range(0, len(order), n_words):
        rows = order[start : start + n_words]
        # As long as these words need, not as long as the biLM could read.
        n_needed = int(n_bytes[rows[-1]]) + N_WORD_MARKERS + config.widest_filter
        char_ids, _ = encode_words([words[i] for i in rows], min(config.max_chars, n_needed))
        parts.append(torch.from_numpy(char_ids).to(device))
    return parts, torch.from_numpy(np.argsort(order)).to(device)
