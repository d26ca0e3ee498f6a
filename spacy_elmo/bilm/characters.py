"""Words -> character ids, as AllenNLP and bilm-tf number them.

The only file that knows the numbers 256 to 260. Ids are those of the HDF5 files
(bilm-tf `data.py`, UnicodeCharsVocabulary): 0-255 are UTF-8 bytes. The readers'
"+1, 0 means no token" is not needed here, since no row stands for no token.
"""

from typing import Iterable, List, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

BOS_WORD = "<S>"
EOS_WORD = "</S>"
N_CHARACTERS = 261  # rows of the character table

_BOS, _EOS, _BOW, _EOW, PADDING = 256, 257, 258, 259, 260


def encode_words(words: Sequence[str], max_chars: int) -> Tuple[NDArray, NDArray]:
    """Write words as rows of character ids: begin of word, UTF-8 bytes (what cannot
    be encoded left out, the rest cut to fit), end of word, padding. The literal
    words "<S>" and "</S>" are the sentence boundaries.

    words (Sequence[str]): The words, any Unicode.
    max_chars (int): Length of a row, markers included; at least 3.
    RETURNS (Tuple[NDArray, NDArray]): ids, shape (n_words, max_chars), int64; and
        the used positions of each row, markers included, shape (n_words,), int64.
    """
    ids = np.full((len(words), max_chars), PADDING, dtype=np.int64)
    lengths = np.empty(len(words), dtype=np.int64)
    ids[:, 0] = _BOW
    for row, word in enumerate(words):
        units = _encode_word(word, max_chars)
        ids[row, 1 : len(units) + 1] = units
        ids[row, len(units) + 1] = _EOW
        lengths[row] = len(units) + 2
    return ids, lengths


def _encode_word(word: str, max_chars: int) -> List[int]:
    if word == BOS_WORD:
        return [_BOS]
    if word == EOS_WORD:
        return [_EOS]
    return list(_encode_utf8(word)[: max_chars - 2])


def _encode_utf8(word: str) -> bytes:
    # A lone surrogate has no encoding; AllenNLP drops it too.
    return word.encode("utf-8", "ignore")


def count_bytes(word: str) -> int:
    """word (str): any word. RETURNS (int): its character positions, markers left out."""
    return len(_encode_utf8(word))


def count_truncated(words: Iterable[str], max_chars: int) -> int:
    """Count the distinct words whose bytes do not fit.

    words (Iterable[str]): The words; one that comes twice counts once.
    max_chars (int): Positions of a word, its two markers included.
    RETURNS (int): How many of them lose bytes.
    """
    max_bytes = max_chars - 2
    # No character has more than 4 bytes: most words need not be encoded.
    long_words = {word for word in words if 4 * len(word) > max_bytes}
    return sum(count_bytes(word) > max_bytes for word in long_words)
