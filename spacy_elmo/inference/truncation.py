"""The warning of words that are longer than a biLM reads."""

import warnings
from typing import Iterable

from ..bilm.characters import count_truncated
from ..bilm.config import BiLMConfig
from ..errors import Warnings


def warn_truncated(words: Iterable[str], config: BiLMConfig) -> bool:
    """Say with WL003 that words are longer than a biLM reads.

    words (Iterable[str]): some words.
    config (BiLMConfig): of the biLM. One that does not read characters looks words up whole.
    RETURNS (bool): whether there are any, so that it was said.
    """
    if config.input != "characters":
        return False
    n_words = count_truncated(words, config.max_chars)
    if n_words:
        text = Warnings.WL003.format(n_words=n_words, n_bytes=config.max_chars - 2)
        warnings.warn(text, stacklevel=3)
    return n_words > 0
