"""What the network reads of a doc beside its vectors: which spans may be mentions, their heads if
there is a parse, and which are written alike."""

from typing import NamedTuple, Optional, Tuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

Ints = NDArray[np.int64]


class MentionFacts(NamedTuple):
    """Of the tokens from `start` on, which are counted from there.

    start (int): first token of the doc that is read.
    n_widths (Ints): shape (n_tokens,): so many tokens has the longest span that begins here.
    words (Ints): shape (n_tokens,): hashes of the words in lower case.
    is_content (NDArray): shape (n_tokens,), bool: no stop word, punctuation or whitespace.
    is_space (NDArray): shape (n_tokens,), bool: whitespace, where no mention begins or ends.
    roots (Optional[Ints]): shape (n_tokens, max_span): of the span that begins here and has 1, 2
        ... tokens, the token that is highest in the parse; None without a parse.
    """

    start: int
    n_widths: Ints
    words: Ints
    is_content: NDArray[np.bool_]
    is_space: NDArray[np.bool_]
    roots: Optional[Ints]


def find_facts(doc: Doc, start: int, end: int, max_span: int) -> MentionFacts:
    """doc (Doc): any doc. start, end (int): the tokens that are read. max_span (int): tokens of the
    longest mention. RETURNS (MentionFacts): of these tokens."""
    tokens = doc[start:end]
    words = np.array([token.lower for token in tokens], dtype="uint64").astype("int64")
    ends = np.minimum(find_sentence_ends(doc)[start:end], end) - start
    n_widths = np.minimum(ends - np.arange(len(ends)), max_span)
    roots = None
    if doc.has_annotation("DEP"):
        depths = np.array([sum(1 for _ in t.ancestors) for t in tokens], dtype="int64")
        roots = find_roots(depths, max_span)
    is_content = np.array([not (t.is_stop or t.is_punct or t.is_space) for t in tokens], dtype=bool)
    is_space = np.array([t.is_space for t in tokens], dtype=bool)
    return MentionFacts(start, n_widths, words, is_content, is_space, roots)


def find_sentence_ends(doc: Doc) -> Ints:
    """doc (Doc): any doc. RETURNS (Ints): shape (n_tokens,): where the sentence of each token ends;
    of a doc without sentences, its end."""
    ends = np.full(len(doc), len(doc), dtype="int64")
    if doc.has_annotation("SENT_START"):
        for sentence in doc.sents:
            ends[sentence.start : sentence.end] = sentence.end
    return ends


def find_roots(depths: Ints, max_span: int) -> Ints:
    """Find the token of each span that is highest in the parse; of several, the first one.

    depths (Ints): shape (n_tokens,): heads between each token and the root of its sentence.
    max_span (int): tokens of the longest span.
    RETURNS (Ints): shape (n_tokens, max_span); spans that end behind the last token have any.
    """
    n = len(depths)
    roots = np.repeat(np.arange(n), max_span).reshape(n, max_span)
    for w in range(1, min(max_span, n)):
        before, last = roots[: n - w, w - 1], np.arange(w, n)
        roots[: n - w, w] = np.where(depths[before] <= depths[last], before, last)
    return roots


def find_texts(words: Ints, starts: Ints, ends: Ints) -> Ints:
    """words (Ints): hashes of a text's words. starts, ends (Ints): shape (n_spans,). RETURNS
    (Ints): shape (n_spans,): the same number for spans with the same words."""
    numbers: dict = {}
    texts = (tuple(words[start:end].tolist()) for start, end in zip(starts, ends))
    return np.array([numbers.setdefault(text, len(numbers)) for text in texts], dtype="int64")


def cut(doc: Doc, n_sentences: int, n_tokens: int) -> Tuple[int, int]:
    """Choose a part of a long doc to train on, by NumPy's random numbers.

    doc (Doc): any doc.
    n_sentences (int): at most so many, one after the other.
    n_tokens (int): as many tokens at most; of a doc without sentences, that alone counts.
    RETURNS (Tuple[int, int]): first token, and the one behind the last.
    """
    starts = np.unique(np.append(0, find_sentence_ends(doc)))
    if len(doc) <= n_tokens and len(starts) - 1 <= n_sentences:
        return 0, len(doc)
    if len(starts) <= 2:
        first = int(np.random.randint(len(doc) - n_tokens + 1))
        return first, first + n_tokens
    # Those from which a part reaches the end of the doc are its last ones: of sentences or tokens.
    rest = len(doc) - starts[:-1]
    reaching = (np.arange(len(rest), 0, -1) <= n_sentences) & (rest <= n_tokens)
    n_firsts = len(rest) - max(int(reaching.sum()) - 1, 0)
    first = int(np.random.randint(n_firsts))
    start = int(starts[first])
    fitting = [int(end) for end in starts[first + 1 : first + 1 + n_sentences]]
    return start, max([end for end in fitting if end <= start + n_tokens] or [start + n_tokens])
