"""Which tokens arrays belong to: told by a token in constant time, by a doc in one pass.

A doc's text never changes, only how it is cut into tokens (`doc.retokenize`). So a token is the
one that an array was made for if the doc has as many tokens as then, and it has the same text
at the same place. What was merged since is made of whole tokens of then, and so is a span of these.
"""

from hashlib import blake2b
from typing import Any, Optional, Union, cast

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IDX, ORTH
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token

from ..errors import Errors


def make_key(doc: Doc) -> NDArray:
    """doc (Doc): any doc. RETURNS (NDArray): the hash of each token's text, the same in every
    process, and its place in the doc's text, shape (n_tokens, 2), uint64."""
    return doc.to_array([ORTH, IDX]).reshape(len(doc), 2)


def has_key(item: Union[Doc, Span, Token], key: Any) -> bool:
    """Check whether tokens are those that a key was made for.

    item (Union[Doc, Span, Token]): a doc, or the part of it that is asked for.
    key (Any): from `make_key`, or the hash that version 0.1.0 wrote.
    RETURNS (bool): whether they are.
    """
    doc = item if isinstance(item, Doc) else item.doc
    if isinstance(key, str):
        return key == blake2b(doc.to_array([ORTH]).tobytes(), digest_size=8).hexdigest()
    if len(key) != len(doc):
        return False
    if isinstance(item, Token):
        return bool(key[item.i, 0] == item.orth and key[item.i, 1] == item.idx)
    rows = key if isinstance(item, Doc) else key[item.start : item.end]
    return np.array_equal(rows, cast(Any, item).to_array([ORTH, IDX]).reshape(-1, 2))


def find_rows(item: Union[Doc, Span, Token], key: Any) -> Optional[slice]:
    """Find the rows of an array that tokens are made of.

    item (Union[Doc, Span, Token]): a doc, or the part of it that is asked for.
    key (Any): as in `has_key`.
    RETURNS (Optional[slice]): of the same tokens, or of all those whose place they have taken; None
        if they are not made of whole ones.
    """
    if has_key(item, key):
        return get_own_rows(item)
    doc = item if isinstance(item, Doc) else item.doc
    part = doc[get_own_rows(item)]
    if part.start == part.end:
        return slice(0, 0)
    if isinstance(key, str) or not _has_text(doc, key):
        return None
    # Characters.
    start, end = part.start_char, part.end_char
    first, stop = (int(i) for i in np.searchsorted(key[:, 1], [start, end]))
    if first == stop or key[first, 1] != start or not _ends_with(part, key[stop - 1]):
        return None
    return slice(first, stop)


def get_own_rows(item: Union[Doc, Span, Token]) -> slice:
    """item (Union[Doc, Span, Token]): a doc, or a part of it. RETURNS (slice): its tokens."""
    if isinstance(item, Token):
        return slice(item.i, item.i + 1)
    return slice(0, len(item)) if isinstance(item, Doc) else slice(item.start, item.end)


def _has_text(doc: Doc, key: Any) -> bool:
    """Whether a doc has the text that a key was made for, and no part of it: what both begin with
    may be alike."""
    start = len(doc) - 1
    while start > 0 and len(key) and doc[start].idx > key[-1, 1]:
        start -= 1
    return bool(len(key)) and _ends_with(doc[start:], key[-1])


def _ends_with(span: Span, row: Any) -> bool:
    """row (Any): of a key. RETURNS (bool): whether its token is the end of a span."""
    orth, start = (int(number) for number in row)
    offset = start - span.start_char
    return offset >= 0 and get_string_id(span.text[offset:]) == orth


def require_key(item: Union[Doc, Span, Token], key: Any, name: str) -> None:
    """item (Union[Doc, Span, Token]), key (Any): as in `has_key`. name (str): the component that
    ran. RAISES (ValueError): EL050 if the tokens were changed since."""
    if not has_key(item, key):
        doc = item if isinstance(item, Doc) else item.doc
        raise ValueError(Errors.EL050.format(text=doc.text[:50], name=name))
