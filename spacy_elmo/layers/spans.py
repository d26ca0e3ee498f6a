"""Cut docs into the sequences that the biLM reads.

The getters are objects, so that a pipeline can be copied and pickled; no dataclasses,
which the config system would turn into dicts.
"""

import warnings
from itertools import accumulate
from typing import Callable, List, Tuple

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IS_SPACE
from spacy.tokens import Doc, Span

from ..errors import Errors, Warnings
from ..text.cutting import cut_windows
from ..utils import require_least

SpanGetter = Callable[[List[Doc]], List[List[Span]]]


def get_sequences(docs: List[Doc], get_spans: SpanGetter) -> Tuple[List[List[str]], List[NDArray]]:
    """Words of each span, whitespace left out, and their rows in the docs put end to end."""
    sequences: List[List[str]] = []
    rows: List[NDArray] = []
    start = 0
    for doc, spans in zip(docs, get_spans(docs)):
        words = [token.text for token in doc]
        is_word = doc.to_array(IS_SPACE) == 0
        for span in spans:
            places = span.start + np.flatnonzero(is_word[span.start : span.end])
            sequences.append([words[i] for i in places])
            # Joined: much faster than to search each word.
            if " " in "".join(sequences[-1]):
                warnings.warn(Warnings.WL061, stacklevel=2)
            rows.append(start + places)
        start += len(doc)
    return sequences, rows


class WindowSpans:
    """Cut docs by their tokens alone: annotations never change a vector. See
    `build_window_spans_v1`."""

    def __init__(self, window: int) -> None:
        self.window = window

    def __call__(self, docs: List[Doc]) -> List[List[Span]]:
        return [_windows(doc[:], self.window) for doc in docs]


class SentenceSpans:
    """Cut docs at their sentence starts. See `build_sentence_spans_v1`."""

    def __init__(self, max_tokens: int) -> None:
        self.max_tokens = max_tokens

    def __call__(self, docs: List[Doc]) -> List[List[Span]]:
        return [_sentences(doc, self.max_tokens) for doc in docs]


def build_window_spans_v1(window: int = 128) -> SpanGetter:
    """Cut docs into windows: after the last sentence end or line break in the second
    half of a window if there is one, else where the window is full.

    window (int): most tokens of a window, whitespace tokens counted; at least 2.
    RETURNS (SpanGetter): for each doc its windows, which cover it.
    RAISES (ValueError): EL012 if the window is too small.
    EXAMPLE:
        >>> import spacy
        >>> doc = spacy.blank("en")("Green eggs and ham")
        >>> build_window_spans_v1(window=3)([doc])
        [[Green eggs and, ham]]
    """
    require_least("window", window, 2)
    return WindowSpans(window)


def build_sentence_spans_v1(max_tokens: int = 1024) -> SpanGetter:
    """Cut docs into their sentences. AllenNLP's models were trained on sentences.

    max_tokens (int): longer sentences are cut like windows; at least 2.
    RETURNS (SpanGetter): for each doc its sentences. It raises ValueError EL040 for a
        doc without sentence starts.
    RAISES (ValueError): EL012 if `max_tokens` is too small.
    EXAMPLE:
        >>> import spacy
        >>> nlp = spacy.blank("en")
        >>> sentencizer = nlp.add_pipe("sentencizer")
        >>> build_sentence_spans_v1()([nlp("Green eggs. And ham?")])
        [[Green eggs., And ham?]]
    """
    require_least("max_tokens", max_tokens, 2)
    return SentenceSpans(max_tokens)


def _sentences(doc: Doc, max_tokens: int) -> List[Span]:
    if len(doc) and not doc.has_annotation("SENT_START"):
        raise ValueError(Errors.EL040.format(text=doc.text[:50]))
    return [part for sentence in doc.sents for part in _windows(sentence, max_tokens)]


def _windows(span: Span, window: int) -> List[Span]:
    if 0 < len(span) <= window:
        return [span]
    words = [token.text for token in span]
    ends = list(accumulate(len(part) for part in cut_windows(words, window)))
    return [span[start:end] for start, end in zip([0, *ends], ends)]
