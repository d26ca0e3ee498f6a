"""Texts that a tokenizer takes badly, in parts. spaCy's own cuts long runs of punctuation off their
word one by one, in a time that grows with the square of their number; that of Japanese, SudachiPy,
refuses texts above 49,149 bytes."""

import re
from typing import Callable, List

from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc

from .sentences import CLOSING, FINAL

_LENGTH = 500
# As lines of "=" are, which crawled text is full of: half a minute for one of 10,000.
_RUNS = re.compile(rf"(?:[^\w\s]|_){{{_LENGTH + 1},}}")

_MOST_BYTES = 49_149
# Of 4 bytes at most.
_MOST_CHARS = _MOST_BYTES // 4
# Where a long text is cut, the best first: behind a line break, a sentence, a space.
_PLACES = [
    re.compile(place)
    for place in (
        r"\n",
        f"[{re.escape(''.join(sorted(FINAL)))}]+[{re.escape(''.join(sorted(CLOSING)))}]*",
        r"\s",
    )
]


def make_doc(tokenize: Callable[[str], Doc], text: str) -> Doc:
    """Tokenize a text, in a time that grows with its length.

    tokenize (Callable[[str], Doc]): a tokenizer, or a pipeline's `make_doc`.
    text (str): any.
    RETURNS (Doc): as the tokenizer makes it, but for a run of more than 500 punctuation marks,
        which is cut into parts of 500 first; and where the tokenizer is not spaCy's own, for a
        text above 49,149 bytes, which is cut as `cut_long`, and whose user data is left out.
    RAISES (ValueError): spaCy's E088 for a text that is longer than the pipeline lets through; else
        what the tokenizer does.
    """
    # `make_doc` is a method of the pipeline, which has the tokenizer.
    owner = getattr(tokenize, "__self__", None)
    if len(text) > getattr(owner, "max_length", len(text)):
        return tokenize(text)
    parts = cut_runs(text)
    if not isinstance(getattr(owner, "tokenizer", tokenize), Tokenizer):
        parts = [piece for part in parts for piece in cut_long(part)]
    if len(parts) == 1:
        return tokenize(text)
    docs = [tokenize(part) for part in parts]
    for each in docs:
        # Its places are those of the part.
        each.user_data.clear()
    doc = Doc.from_docs(docs, ensure_whitespace=False)
    assert doc is not None
    return doc


def cut_runs(text: str) -> List[str]:
    """text (str): any. RETURNS (List[str]): its parts, which make it together."""
    starts = [0]
    for run in _RUNS.finditer(text):
        starts += range(run.start() + _LENGTH, run.end(), _LENGTH)
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)])]


def cut_long(text: str) -> List[str]:
    """text (str): any. RETURNS (List[str]): its parts, which make it together: itself, or if it has
    more than 49,149 bytes parts that have less, cut behind a line break, else a sentence, else a
    space, else anywhere."""
    if len(text) <= _MOST_CHARS or len(text.encode("utf-8", "surrogatepass")) <= _MOST_BYTES:
        return [text]
    parts = []
    start = 0
    while start < len(text):
        end = _find_end(text, start)
        parts.append(text[start:end])
        start = end
    return parts


def _find_end(text: str, start: int) -> int:
    end = start + _MOST_CHARS
    if end >= len(text):
        return len(text)
    for place in _PLACES:
        found = [match.end() for match in place.finditer(text, start + _MOST_CHARS // 2, end)]
        # What ends there may go on.
        if ends := [each for each in found if each < end]:
            return ends[-1]
    return end
