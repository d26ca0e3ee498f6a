"""`TextReader`: a text from a stranger to docs, one for each line, within limits."""

from collections import OrderedDict
from typing import List

from spacy.language import Language
from spacy.tokens import Doc, Token

from ..errors import Errors
from ..text.cutting import make_doc
from .explore_limits import ExploreLimits

# Texts whose docs are kept: a page asks several times about the same one.
_N_KEPT = 8


class TextReader:
    """Reads texts by a pipeline, and remembers the last ones. Not for several threads at a time.

    nlp (Language): the pipeline.
    limits (ExploreLimits): what it reads.
    """

    def __init__(self, nlp: Language, limits: ExploreLimits) -> None:
        self.nlp = nlp
        self.limits = limits
        self._kept: OrderedDict[str, List[Doc]] = OrderedDict()

    def read(self, text: str) -> List[Doc]:
        """text (str): lines. RETURNS (List[Doc]): a doc for each line that is not blank. RAISES
        (ValueError): EL271 if there are none, EL272 if there is too much."""
        if text not in self._kept:
            self._kept[text] = self._read(text)
        self._kept.move_to_end(text)
        while len(self._kept) > _N_KEPT:
            self._kept.popitem(last=False)
        return self._kept[text]

    def _read(self, text: str) -> List[Doc]:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            raise ValueError(Errors.EL271)
        _require_most(len(text), self.limits.max_chars, "characters", "--max-chars")
        _require_most(len(lines), self.limits.max_lines, "lines", "--max-lines")
        docs = [make_doc(self.nlp.make_doc, line) for line in lines]
        _require_most(sum(map(len, docs)), self.limits.max_tokens, "tokens", "--max-tokens")
        return list(self.nlp.pipe(docs))


def _require_most(n: int, most: int, what: str, option: str) -> None:
    if n > most:
        raise ValueError(Errors.EL272.format(n=n, what=what, most=most, option=option))


def list_tokens(docs: List[Doc]) -> List[Token]:
    """docs (List[Doc]): of a text. RETURNS (List[Token]): all of them, by the numbers that the
    page has for them."""
    return [token for doc in docs for token in doc]


def get_token(docs: List[Doc], i: int) -> Token:
    """docs (List[Doc]): of a text. i (int): among its tokens. RETURNS (Token): it. RAISES
    (ValueError): EL276 if there is none, or if it is whitespace."""
    tokens = list_tokens(docs)
    if not 0 <= i < len(tokens) or tokens[i].is_space:
        raise ValueError(Errors.EL276.format(i=i, n=len(tokens)))
    return tokens[i]
