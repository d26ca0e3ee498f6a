"""Cut docs into the sequences that the biLM reads.

The getters are objects, so that a pipeline can be copied and pickled; no dataclasses,
which the config system would turn into dicts.
"""

from typing import Callable, List

from spacy.pipeline import Sentencizer
from spacy.tokens import Doc, Span, Token

from .errors import Errors

SpanGetter = Callable[[List[Doc]], List[List[Span]]]

# Sentence-final in many scripts; what may still follow a sentence's end belongs to it.
_FINAL = frozenset(Sentencizer.default_punct_chars)
_CLOSING = frozenset("\"'”’»)]}›」』）】")


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
    """
    if window < 2:
        raise ValueError(Errors.EL012.format(key="window", value=window, least=2))
    return WindowSpans(window)


def build_sentence_spans_v1(max_tokens: int = 1024) -> SpanGetter:
    """Cut docs into their sentences. AllenNLP's models were trained on sentences.

    max_tokens (int): longer sentences are cut like windows; at least 2.
    RETURNS (SpanGetter): for each doc its sentences. It raises ValueError EL040 for a
        doc without sentence starts.
    RAISES (ValueError): EL012 if `max_tokens` is too small.
    """
    if max_tokens < 2:
        raise ValueError(Errors.EL012.format(key="max_tokens", value=max_tokens, least=2))
    return SentenceSpans(max_tokens)


def _sentences(doc: Doc, max_tokens: int) -> List[Span]:
    if len(doc) and not doc.has_annotation("SENT_START"):
        raise ValueError(Errors.EL040.format(text=doc.text[:50]))
    return [part for sentence in doc.sents for part in _windows(sentence, max_tokens)]


def _windows(span: Span, window: int) -> List[Span]:
    windows: List[Span] = []
    start = 0
    while start < len(span):
        end = min(start + window, len(span))
        if end < len(span):
            end = _find_cut(span, start + window // 2, end)
        windows.append(span[start:end])
        start = end
    return windows


def _find_cut(span: Span, first: int, end: int) -> int:
    """The position after the last good place in span[first:end], or `end`."""
    for i in range(end - 1, first - 1, -1):
        if _ends_sentence(span[i]):
            cut = i + 1
            while cut < end and span[cut].text in _CLOSING:
                cut += 1
            return cut
    return end


def _ends_sentence(token: Token) -> bool:
    if token.is_space:
        return "\n" in token.text
    return all(char in _FINAL for char in token.text)
