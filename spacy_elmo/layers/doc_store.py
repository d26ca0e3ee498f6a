"""What a user reads: `doc._.elmo` and the extensions of tokens and spans.

`doc._.elmo` is a dict, component name -> {"mix": (n_tokens, width), "layers":
(n_tokens, n_layers, layer_width) if they were kept, "key": which tokens they belong to, "biLM":
which weights made them, where somebody listens or layers are kept}. It holds plain values, so it
travels through bytes, pickle and DocBin.
"""

from typing import Any, Dict, Optional, Union, cast

import numpy as np
from spacy.tokens import Doc, Span, Token
from thinc.types import Floats1d, Floats2d, Floats3d

from ..errors import Errors
from .doc_arrays import get_arrays, register_arrays, set_arrays
from .extensions import add_extension
from .live_mixes import find_layers, is_part_of_mix, note_mix
from .token_keys import find_rows, get_own_rows, make_key, require_key

Item = Union[Doc, Span, Token]
_NAME = "elmo"
# Of an entry: which weights made it.
WEIGHTS = "biLM"

ASSIGNS = [
    "doc.tensor", "doc._.elmo", "token._.elmo", "token._.elmo_layers", "span._.elmo",
]  # fmt: skip


def register_extensions() -> None:
    """Register the extensions. Harmless when done before."""
    register_arrays(_NAME)
    add_extension(Token, "elmo", getter=get_token_vector)
    add_extension(Token, "elmo_layers", getter=get_token_layers)
    add_extension(Span, "elmo", getter=get_span_vector)


def store(
    doc: Doc, name: str, mix: Floats2d, layers: Optional[Floats3d], weights: Optional[str] = None
) -> None:
    """Keep a component's vectors with a doc, as the last that ran.

    doc (Doc): the doc.
    name (str): the component.
    mix (Floats2d): shape (n_tokens, width).
    layers (Optional[Floats3d]): shape (n_tokens, n_layers, layer_width).
    weights (Optional[str]): of the biLM, as `identify` says; None if nobody asks.
    """
    note_mix(mix, name, layers)
    # On a GPU, spaCy's retokenizer moves the rows of `doc.tensor` in place.
    kept = mix if isinstance(mix, np.ndarray) else mix.copy()
    entry: Dict[str, Any] = {"mix": kept, "key": make_key(doc)}
    if layers is not None:
        entry["layers"] = layers
    if weights is not None:
        entry[WEIGHTS] = weights
    entries = {other: e for other, e in get_entries(doc).items() if other != name}
    set_arrays(_NAME, doc, {**entries, name: entry})


def get_entries(doc: Doc) -> Dict[str, Dict[str, Any]]:
    """doc (Doc): any doc. RETURNS (Dict[str, Dict[str, Any]]): component -> what it left, the
    one that ran last at the end; empty if there is none."""
    return get_arrays(_NAME, doc) or {}


def read_layers(doc: Doc, name: str, item: Optional[Item] = None) -> Optional[Floats3d]:
    """Find the layers that a component left.

    doc (Doc): the doc.
    name (str): the component.
    item (Optional[Item]): what of the doc they are wanted for; None for all of it.
    RETURNS (Optional[Floats3d]): of the doc, shape (n_tokens, n_layers, layer_width); None if
        there are none. What `Span.as_doc` made of a doc has those of its tokens.
    RAISES (ValueError): EL050 if the tokens of `item` were changed since.
    """
    entries = get_entries(doc)
    if not entries:
        return find_layers(doc, name)
    entry = entries.get(name)
    if entry is None or "layers" not in entry:
        return None
    require_key(doc if item is None else item, entry["key"], name)
    return entry["layers"]


def get_vectors(item: Item) -> Floats2d:
    """Find vectors of the elmo component that ran last.

    item (Item): a doc, or the part of it that is asked for; a token takes constant time, if no
        tokens were merged since.
    RETURNS (Floats2d): of its tokens, shape (n_tokens, width), from `doc._.elmo`; where tokens
        were merged, of those that they are made of. What `Span.as_doc` made of a doc has them in
        `doc.tensor` alone.
    RAISES (ValueError): EL050 if its tokens were cut in other ways since, EL051 if there are
        no vectors.
    """
    doc = item if isinstance(item, Doc) else item.doc
    entries = get_entries(doc)
    name = next(reversed(entries), "elmo")
    entry = entries.get(name)
    rows = None if entry is None else find_rows(item, entry["key"])
    if entry is not None and rows is not None:
        return entry["mix"][rows]
    if is_part_of_mix(doc):
        return cast(Floats2d, doc.tensor[get_own_rows(item)])
    error = Errors.EL051 if entry is None else Errors.EL050
    raise ValueError(error.format(text=doc.text[:50], name=name))


def get_token_vector(token: Token) -> Floats1d:
    """token._.elmo: shape (width,). Errors as `get_vectors`."""
    return _average(get_vectors(token))


def get_span_vector(span: Span) -> Floats1d:
    """span._.elmo: the mean over the tokens, zeros if there are none, shape (width,).
    Errors as `get_vectors`."""
    return _average(get_vectors(span))


def get_token_layers(token: Token) -> Floats2d:
    """token._.elmo_layers: shape (n_layers, layer_width), the word layer first.

    RAISES (ValueError): EL051 if no component has run, EL050 if the tokens were changed since,
        EL052 if the layers were not kept.
    """
    entries = get_entries(token.doc)
    name = next(reversed(entries), None)
    layers = read_layers(token.doc, name, token) if name else find_layers(token.doc)
    if layers is None and name is None and not is_part_of_mix(token.doc):
        raise ValueError(Errors.EL051.format(text=token.doc.text[:50]))
    if layers is None:
        raise ValueError(Errors.EL052.format(name=name or _NAME))
    return layers[token.i]


def _average(vectors: Floats2d) -> Floats1d:
    """vectors (Floats2d): shape (n, width). RETURNS (Floats1d): their mean; zeros of none."""
    return vectors[0] if len(vectors) == 1 else vectors.sum(axis=0) / max(1, len(vectors))
