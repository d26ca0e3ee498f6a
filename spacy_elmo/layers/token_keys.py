"""Which tokens arrays belong to: told by a token in constant time, by a doc in one pass.

A doc's text never changes, only how it is cut into tokens (`doc.retokenize`). So a token is the
one that an array was made for if the doc has as many tokens as then, and it has the same text
at the same place.
"""

from hashlib import blake2b
from typing import Any, Union, cast

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IDX, ORTH
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


def require_key(item: Union[Doc, Span, Token], key: Any, name: str) -> None:
    """item (Union[Doc, Span, Token]), key (Any): as in `has_key`. name (str): the component that
    ran. RAISES (ValueError): EL050 if the tokens were changed since."""
    if not has_key(item, key):
        doc = item if isinstance(item, Doc) else item.doc
        raise ValueError(Errors.EL050.format(text=doc.text[:50], name=name))
