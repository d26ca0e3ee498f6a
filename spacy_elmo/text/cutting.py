"""Texts -> sequences of words: the tokenizer, and where sequences are cut."""

from typing import Any, Callable, List, Sequence

import numpy as np
from spacy.tokens import Doc

from ..errors import Errors
from ..utils import require_least
from .long_texts import make_doc
from .sentences import cut_sentences, cut_windows

CUTS = ("sentences", "lines", "windows")

# Words that a tokenizer may know, some hundred bytes each.
_MOST_WORDS = 100_000
# What it may remember of what stands between spaces: spaCy's 10,000 leave a fourth of a text
# to be split again and again.
_MOST_CHUNKS = 1_000_000


def split_words(tokenizer: Callable[[str], Doc], text: str) -> List[str]:
    """tokenizer (Callable[[str], Doc]): spaCy's. text (str): any. RETURNS (List[str]): its
    words, as the biLM reads them: whitespace is none."""
    return _get_words(make_doc(tokenizer, text))


def _get_words(doc: Doc) -> List[str]:
    return [token.text for token in doc if not token.is_space]


def _cut_doc(doc: Doc) -> List[List[str]]:
    """RETURNS (List[List[str]]): Words of its sentences, which end at line breaks, too."""
    words = [token.text for token in doc if not token.is_space or "\n" in token.text]
    return [[w for w in sentence if not w.isspace()] for sentence in cut_sentences(words)]


class Cutter:
    """Turn texts that follow each other into sequences, as the component reads them:
    the same tokens, whitespace left out. A sentence ends at a line break, too.

    make_tokenizer (Callable[[], Any]): makes spaCy's: str -> Doc. It remembers every word:
        after many new ones it is created again, so that memory stays bounded. (A memory zone
        would do, but in it the tokenizer remembers none, and takes twice as long.)
    max_tokens (int): most tokens of a sequence; longer ones are cut like windows.
    window_share (float): share of the chunks that are cut into windows, which join
        sentences and texts; the rest is cut into single sentences.
    cut (str): how the rest is cut: "sentences", "lines" (each text as it is) or
        "windows".
    seed (int): of the choice.
    """

    def __init__(
        self,
        make_tokenizer: Callable[[], Any],
        *,
        max_tokens: int = 128,
        window_share: float = 0.0,
        cut: str = "sentences",
        seed: int = 0,
    ) -> None:
        if cut not in CUTS:
            raise ValueError(Errors.EL086.format(value=cut, known=", ".join(CUTS)))
        require_least("max_tokens", max_tokens, 2)
        self.make_tokenizer = make_tokenizer
        self.tokenizer = self._start_tokenizer()
        self.max_tokens = max_tokens
        self.window_share = window_share
        self.cut = cut
        self.seed = seed

    def __call__(self, texts: Sequence[str], number: int) -> List[List[str]]:
        """texts (Sequence[str]): texts that follow each other; an empty one is a break.
        number (int): of the chunk, which decides how it is cut.
        RETURNS (List[List[str]]): sequences, at least one word in each.
        """
        cut = self.cut
        if np.random.default_rng([self.seed, 3, number]).random() < self.window_share:
            cut = "windows"
        sequences: List[List[str]] = []
        joined: List[str] = []
        for doc in self._tokenize(texts):
            if cut == "sentences":
                sequences += _cut_doc(doc)
                continue
            words = _get_words(doc)
            if cut == "windows" and words:
                joined += words
            elif cut == "windows":
                sequences.append(joined)
                joined = []
            else:
                sequences.append(words)
        sequences.append(joined)
        return [
            list(window)
            for sequence in sequences
            for window in cut_windows(sequence, self.max_tokens)
        ]

    def _tokenize(self, texts: Sequence[str]) -> List[Doc]:
        docs = [make_doc(self.tokenizer, text) for text in texts]
        # A tokenizer of someone's own need not say what its vocab is; its docs do.
        if docs and len(docs[-1].vocab) > _MOST_WORDS:
            self.tokenizer = self._start_tokenizer()
        return docs

    def _start_tokenizer(self) -> Any:
        tokenizer = self.make_tokenizer()
        if hasattr(tokenizer, "max_cache_size"):
            tokenizer.max_cache_size = _MOST_CHUNKS
        return tokenizer
