"""Long runs of punctuation: spaCy's tokenizer cuts them off their word one by one, in a time that
grows with the square of their number."""

import re
from typing import Callable, List

from spacy.tokens import Doc

_LENGTH = 500
# As lines of "=" are, which crawled text is full of: half a minute for one of 10,000.
_RUNS = re.compile(rf"(?:[^\w\s]|_){{{_LENGTH + 1},}}")


def make_doc(tokenize: Callable[[str], Doc], text: str) -> Doc:
    """Tokenize a text, in a time that grows with its length.

    tokenize (Callable[[str], Doc]): a tokenizer, or a pipeline's `make_doc`.
    text (str): any.
    RETURNS (Doc): as the tokenizer makes it, but for a run of more than 500 punctuation marks,
        which is cut into parts of 500 first.
    """
    parts = cut_runs(text)
    if len(parts) == 1:
        return tokenize(text)
    doc = Doc.from_docs([tokenize(part) for part in parts], ensure_whitespace=False)
    assert doc is not None
    return doc


def cut_runs(text: str) -> List[str]:
    """text (str): any. RETURNS (List[str]): its parts, which make it together."""
    starts = [0]
    for run in _RUNS.finditer(text):
        starts += range(run.start() + _LENGTH, run.end(), _LENGTH)
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)])]
