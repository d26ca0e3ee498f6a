"""What a user reads: `doc._.elmo` and the extensions of tokens and spans.

`doc._.elmo` is a dict, component name -> {"mix": (n_tokens, width), "layers":
(n_tokens, n_layers, layer_width) if they were kept, "key": a hash of the tokens}. It holds
plain arrays, so it travels through bytes, pickle and DocBin.
"""

from hashlib import blake2b
from typing import Any, Dict, Optional, Set, Union

from spacy.attrs import ORTH
from spacy.tokens import Doc, Span, Token
from thinc.api import get_array_module
from thinc.types import Floats1d, Floats2d, Floats3d

from .errors import Errors

ASSIGNS = [
    "doc.tensor", "doc._.elmo", "token._.elmo", "token._.elmo_layers", "span._.elmo",
]  # fmt: skip

# Widths of the elmo components made in this process: a `doc.tensor` of another width
# is none of ours.
_widths: Set[int] = set()


def register_extensions() -> None:
    """Register the extensions. Harmless when done before."""
    if not Doc.has_extension("elmo"):
        Doc.set_extension("elmo", default=None)
        Token.set_extension("elmo", getter=get_token_vector)
        Token.set_extension("elmo_layers", getter=get_token_layers)
        Span.set_extension("elmo", getter=get_span_vector)


def register_width(width: int) -> None:
    """Have `doc.tensor`s of a width known as ours.

    width (int): width of a component's mix.
    """
    _widths.add(width)


def store(doc: Doc, name: str, mix: Floats2d, layers: Optional[Floats3d]) -> None:
    """Keep a component's vectors with a doc, as the last that ran.

    doc (Doc): the doc.
    name (str): the component.
    mix (Floats2d): shape (n_tokens, width).
    layers (Optional[Floats3d]): shape (n_tokens, n_layers, layer_width).
    """
    entry: Dict[str, Any] = {"mix": mix, "key": _get_key(doc)}
    if layers is not None:
        entry["layers"] = layers
    entries = {other: e for other, e in (doc._.elmo or {}).items() if other != name}
    doc._.elmo = {**entries, name: entry}


def read_layers(doc: Doc, name: str) -> Optional[Floats3d]:
    """Find the layers that a component left.

    doc (Doc): the doc.
    name (str): the component.
    RETURNS (Optional[Floats3d]): shape (n_tokens, n_layers, layer_width), None if there are
        none.
    RAISES (ValueError): EL050 if the tokens were changed since.
    """
    entry = (doc._.elmo or {}).get(name)
    if entry is None or "layers" not in entry:
        return None
    _check_key(doc, entry)
    return entry["layers"]


def get_doc_vectors(doc: Doc) -> Floats2d:
    """Find the vectors of the elmo component that ran last.

    doc (Doc): the doc.
    RETURNS (Floats2d): shape (n_tokens, width), from `doc._.elmo`; where that is gone
        (`Doc.from_docs`, `Span.as_doc`) from `doc.tensor`.
    RAISES (ValueError): EL050 if the tokens were changed since, EL051 if there are no
        vectors.
    """
    if doc._.elmo:
        entry = doc._.elmo[next(reversed(doc._.elmo))]
        _check_key(doc, entry)
        return entry["mix"]
    tensor: Any = doc.tensor
    if tensor.ndim == 2 and tensor.shape[0] == len(doc) and tensor.shape[1] in _widths:
        return tensor
    raise ValueError(Errors.EL051.format(text=doc.text[:50]))


def get_token_vector(token: Token) -> Floats1d:
    """token._.elmo: shape (width,). Errors as `get_doc_vectors`."""
    return get_doc_vectors(token.doc)[token.i]


def get_span_vector(span: Span) -> Floats1d:
    """span._.elmo: the mean over the tokens, zeros if there are none, shape (width,).
    Errors as `get_doc_vectors`."""
    vectors = get_doc_vectors(span.doc)[span.start : span.end]
    return vectors.sum(axis=0) / max(1, len(vectors))


def get_token_layers(token: Token) -> Floats2d:
    """token._.elmo_layers: shape (n_layers, layer_width), the word layer first.

    RAISES (ValueError): EL050 if the tokens were changed since, EL052 if the layers
        were not kept.
    """
    entries = token.doc._.elmo or {}
    name = next(reversed(entries)) if entries else "elmo"
    layers = read_layers(token.doc, name)
    if layers is None:
        raise ValueError(Errors.EL052.format(name=name))
    return layers[token.i]


def _get_key(doc: Doc) -> str:
    # Hashes of strings are the same in every process, unlike Python's `hash`.
    return blake2b(doc.to_array([ORTH]).tobytes(), digest_size=8).hexdigest()


def _check_key(doc: Doc, entry: Dict[str, Any]) -> None:
    if entry["key"] != _get_key(doc):
        raise ValueError(Errors.EL050.format(text=doc.text[:50]))


def set_hooks(doc: Doc) -> None:
    """Have `vector` and `similarity` of a doc, its spans and tokens read our vectors,
    also where the pipeline has static vectors.

    doc (Doc): the doc. spaCy drops hooks in `to_bytes` and with `n_process`.
    """
    for hooks, get_vector in (
        (doc.user_hooks, _get_doc_vector),
        (doc.user_span_hooks, get_span_vector),
        (doc.user_token_hooks, get_token_vector),
    ):
        hooks["vector"] = get_vector
        hooks["has_vector"] = _has_vector
        hooks["similarity"] = _get_similarity


def _get_doc_vector(doc: Doc) -> Floats1d:
    return get_span_vector(doc[:])


def _has_vector(item: Union[Doc, Span, Token]) -> bool:
    return True


def _get_similarity(item: Union[Doc, Span, Token], other: Any) -> float:
    """The cosine, 0 if one of the vectors is zero."""
    a, b = item.vector, other.vector
    xp = get_array_module(a)
    norms = float(xp.linalg.norm(a) * xp.linalg.norm(b))
    return float(xp.dot(a, b)) / norms if norms else 0.0
