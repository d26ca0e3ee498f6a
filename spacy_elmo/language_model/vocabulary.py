"""`Vocabulary`: the words that the softmax predicts, by frequency."""

from collections import Counter
from typing import Dict, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..bilm.batch import BOS_WORD, EOS_WORD, count_bytes
from ..errors import Errors
from ..utils import show_name

UNK_WORD = "<UNK>"
SPECIAL_WORDS = (BOS_WORD, EOS_WORD, UNK_WORD)


class Vocabulary:
    """Words in the order of their softmax rows: `<S>`, `</S>`, `<UNK>`, then the most frequent
    first, as the log-uniform sampler needs it. RAISES (ValueError): EL071 for other or repeated
    words."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self.ids: Dict[str, int] = {word: i for i, word in enumerate(self.words)}
        if tuple(self.words[:3]) != SPECIAL_WORDS or len(self.ids) != len(self.words):
            first = ", ".join(map(show_name, self.words[:3]))
            raise ValueError(Errors.EL071.format(found=first))

    def __len__(self) -> int:
        return len(self.words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.words == other.words

    def knows(self, word: str) -> bool:
        """Whether a word has its own row; the special words have not."""
        return self.ids.get(word, -1) >= len(SPECIAL_WORDS)

    def encode(self, words: Iterable[str]) -> NDArray:
        """Rows of words, int64; the row of `<UNK>` for unknown words."""
        unknown = self.ids[UNK_WORD]
        return np.array([self.ids.get(word, unknown) for word in words], dtype=np.int64)

    def log_frequencies(self) -> NDArray:
        """Log of the relative frequency of each word, shape (n_words,), float32, as Zipf's law with
        Mandelbrot's constant 2.7 has it: 1 / (rank + 2.7). A checkpoint has no counts. Special
        words count as the most frequent one."""
        ranks = np.arange(len(self.words)) - len(SPECIAL_WORDS) + 1
        frequencies = 1 / (np.maximum(ranks, 1) + 2.7)
        return np.log(frequencies / frequencies.sum()).astype("float32")


class WordCounter:
    """Count words in bounded memory: above `max_types` the rarest are forgotten."""

    def __init__(self, max_types: int = 5_000_000) -> None:
        self.max_types = max_types
        self.counts: Counter[str] = Counter()
        self.lengths: Counter[int] = Counter()
        self.n_tokens = 0
        self.n_sequences = 0
        # Words with at most this count were forgotten at some time.
        self.pruned_below = 0

    def add(self, sequences: Iterable[Sequence[str]]) -> None:
        for words in sequences:
            self.counts.update(words)
            self.lengths[len(words)] += 1
            self.n_tokens += len(words)
            self.n_sequences += 1
        while len(self.counts) > self.max_types:
            self.pruned_below += 1
            least = self.pruned_below
            self.counts = Counter({w: n for w, n in self.counts.items() if n > least})

    def make_vocabulary(self, size: int, min_count: int, include: Iterable[str] = ()) -> Vocabulary:
        """Choose the words to predict, by frequency, then by the alphabet: at most `size` with the
        special ones (0: no limit) that occur at least `min_count` times, and those to `include`."""
        for word in SPECIAL_WORDS:
            del self.counts[word]
        frequent = [w for w, n in self.counts.items() if n >= min_count and _is_line(w)]
        frequent.sort(key=lambda word: (-self.counts[word], word))
        chosen = frequent[: max(0, size - len(SPECIAL_WORDS))] if size else frequent
        extra = set(include) - set(chosen) - set(SPECIAL_WORDS)
        chosen = sorted([*chosen, *extra], key=lambda word: (-self.counts[word], word))
        return Vocabulary([*SPECIAL_WORDS, *chosen])

    def count_long(self, n_bytes: int) -> int:
        """Count the tokens with more than n_bytes bytes in UTF-8."""
        return sum(n for word, n in self.counts.items() if count_bytes(word) > n_bytes)

    def count_known(self, vocabulary: Vocabulary) -> int:
        """Count the tokens that are in the vocabulary."""
        return sum(self.counts[word] for word in vocabulary.words)


def _is_line(word: str) -> bool:
    """Whether vocab.txt can hold the word in a line."""
    return bool(word) and "\n" not in word and not word.endswith("\r")
