"""Distinct words -> their vectors, words of like length together."""

from typing import List

import numpy as np
import torch
from torch import Tensor

from ..characters import encode_words
from .model import BiLM

# Words per pass through the convolutions, so that their memory is bounded.
_CNN_WORDS = 1024


def encode_distinct(bilm: BiLM, words: List[str]) -> Tensor:
    """Compute word vectors, the character axis cropped to the words of each pass.

    bilm (BiLM): the network.
    words (List[str]): distinct words.
    RETURNS (Tensor): shape (n_words, width // 2), in the order of the words.
    """
    config = bilm.config
    if config.input != "characters":
        return bilm.encode(bilm.word_table.find(words).to(bilm.device))
    char_ids, lengths = encode_words(words, config.max_chars)
    order = np.argsort(lengths, kind="stable")
    parts: List[Tensor] = []
    for start in range(0, len(order), _CNN_WORDS):
        rows = order[start : start + _CNN_WORDS]
        n_chars = min(config.max_chars, int(lengths[rows[-1]]) + config.widest_filter)
        ids = torch.from_numpy(char_ids[rows, :n_chars]).to(bilm.device)
        parts.append(bilm.encode(ids))
    back = torch.from_numpy(np.argsort(order)).to(bilm.device)
    return torch.cat(parts)[back]
