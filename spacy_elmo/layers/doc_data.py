"""The data that the component elmo stores with a doc, and attributes and hooks that read it.

`doc._.elmo` is a dict, component name -> {"mix": (n_tokens, width), "layers":
(n_tokens, n_layers, layer_width) if they were kept, "key": which tokens the rows belong to}. It
holds plain values, so it survives bytes, pickle and DocBin.
"""

import warnings
from typing import Any, Dict, Optional, Type, Union, cast

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IDX, ORTH
from spacy.tokens import Doc, Span, Token
from thinc.api import to_numpy
from thinc.types import Floats1d, Floats2d, Floats3d

from ..errors import Errors, Warnings

Item = Union[Doc, Span, Token]
# Where spaCy keeps the value of `doc._.elmo`.
_ELMO = ("._.", "elmo", None, None)
ASSIGNS = [
    "doc.tensor", "doc._.elmo", "token._.elmo", "token._.elmo_layers", "span._.elmo",
]  # fmt: skip


def add_extension(kind: Type[Item], name: str, **settings: Any) -> None:
    """Register a custom attribute. Warn with WL060 if another package has one of this name."""
    if not kind.has_extension(name):
        kind.set_extension(name, **settings)
        return
    default, *functions = kind.get_extension(name)
    expected = [settings.get(key) for key in ("method", "getter", "setter")]
    if default is not settings.get("default") or functions != expected:
        warnings.warn(Warnings.WL060.format(kind=kind.__name__, name=name), stacklevel=2)


def register_extensions() -> None:
    """Register what users read. Harmless when done before."""
    add_extension(Doc, "elmo", default=None)
    add_extension(Token, "elmo", getter=get_token_vector)
    add_extension(Token, "elmo_layers", getter=get_token_layers)
    add_extension(Span, "elmo", getter=get_span_vector)
    for kind in (Doc, Span, Token):
        add_extension(kind, "elmo_similarity", method=compare_items)


# Which tokens rows belong to


def make_key(doc: Doc) -> NDArray:
    """Hash of each token's text and its start in the doc's text, shape (n_tokens, 2), uint64, the
    same in every process."""
    return doc.to_array([ORTH, IDX]).reshape(len(doc), 2)


def require_key(item: Item, key: NDArray, name: str) -> None:
    """Check that tokens are those that the component `name` computed rows for, else EL050. A token
    takes constant time."""
    if not _has_key(item, key):
        raise ValueError(Errors.EL050.format(text=_get_doc(item).text[:50], name=name))


def _has_key(item: Item, key: NDArray) -> bool:
    if len(key) != len(_get_doc(item)):
        return False
    if isinstance(item, Token):
        return bool(key[item.i, 0] == item.orth and key[item.i, 1] == item.idx)
    found = cast(Any, item).to_array([ORTH, IDX]).reshape(-1, 2)
    return np.array_equal(_take_rows(item, key), found)


def _get_doc(item: Item) -> Doc:
    return item if isinstance(item, Doc) else item.doc


def _take_rows(item: Item, X: Any) -> Any:
    """The rows of an item's tokens, of an array with a row for each token of its doc."""
    if isinstance(item, Token):
        return X[item.i : item.i + 1]
    return X if isinstance(item, Doc) else X[item.start : item.end]


# Vectors and layers


def set_vectors(doc: Doc, name: str, mix: Floats2d, layers: Optional[Floats3d]) -> None:
    """Keep the vectors of the component that ran last with a doc: `mix` of shape (n_tokens, width),
    `layers` of shape (n_tokens, n_layers, layer_width)."""
    # On a GPU, spaCy's retokenizer moves the rows of `doc.tensor` in place.
    kept = mix if isinstance(mix, np.ndarray) else mix.copy()
    entry: Dict[str, Any] = {"mix": kept, "key": make_key(doc)}
    if layers is not None:
        entry["layers"] = layers
    entries = {other: e for other, e in get_entries(doc).items() if other != name}
    cast(Dict, doc.user_data)[_ELMO] = {**entries, name: entry}


def get_entries(doc: Doc) -> Dict[str, Dict[str, Any]]:
    """What each component left with a doc, the one that ran last at the end."""
    return cast(Dict, doc.user_data).get(_ELMO) or {}


def get_layers(doc: Doc, name: str) -> Optional[Floats3d]:
    """Layers that a component left, shape (n_tokens, n_layers, layer_width), or None. EL050 if the
    tokens were merged or split since."""
    entry = get_entries(doc).get(name)
    if entry is None or "layers" not in entry:
        return None
    require_key(doc, entry["key"], name)
    return entry["layers"]


def missing_layers(doc: Doc, name: str) -> ValueError:
    """EL052 if the component has run and kept no layers, EL051 if it has not run."""
    entries = get_entries(doc)
    if name in entries:
        return ValueError(Errors.EL052.format(name=name))
    known = ", ".join(f"'{other}'" for other in entries) or "none"
    return ValueError(Errors.EL051.format(text=doc.text[:50], name=name, known=known))


def get_vectors(item: Item) -> Floats2d:
    """Vectors that the last elmo component gave to the tokens, shape (n_tokens, width). EL050 if
    they were merged or split since, EL051 without vectors, as in the result of `Span.as_doc`."""
    name, entry = _get_last(_get_doc(item))
    require_key(item, entry["key"], name)
    return _take_rows(item, entry["mix"])


def get_token_vector(token: Token) -> Floats1d:
    """token._.elmo: shape (width,), a copy. Errors as `get_vectors`."""
    return get_vectors(token)[0].copy()


def get_span_vector(span: Span) -> Floats1d:
    """span._.elmo: the mean over the tokens, zeros for an empty span, shape (width,).
    Errors as `get_vectors`."""
    return _average(get_vectors(span))


def get_token_layers(token: Token) -> Floats2d:
    """token._.elmo_layers: shape (n_layers, layer_width), the word layer first, a copy. Errors as
    `get_vectors`, EL052 if the layers were not kept."""
    name, entry = _get_last(token.doc)
    if "layers" not in entry:
        raise missing_layers(token.doc, name)
    require_key(token, entry["key"], name)
    return entry["layers"][token.i].copy()


def compare_items(item: Item, other: Item, mean: Optional[Floats1d] = None) -> float:
    """doc._.elmo_similarity(other), also of spans and tokens: the cosine of the mean vectors of two
    docs, spans or tokens, 0 if one of them is zero. It works where spaCy has lost the hooks.

    mean (Optional[Floats1d]): subtracted from both vectors first, shape (width,), such as the mean
        over many docs: contextual vectors share a large part, which makes all cosines high.
    RETURNS (float): between -1 and 1.
    RAISES (ValueError): as `get_vectors`; for vectors of different widths.
    """
    vectors = [to_numpy(_average(get_vectors(each))) for each in (item, other)]
    shift = 0.0 if mean is None else to_numpy(mean)
    return _cosine(item, other, *(cast(Any, vector) - shift for vector in vectors))


def _get_last(doc: Doc) -> Any:
    entries = get_entries(doc)
    if not entries:
        raise missing_layers(doc, "elmo")
    name = next(reversed(entries))
    return name, entries[name]


def _average(vectors: Any) -> Floats1d:
    return vectors.sum(axis=0) / max(1, len(vectors))


# Hooks


def set_hooks(doc: Doc) -> None:
    """Have `vector` and `similarity` of a doc, its spans and tokens read our vectors. Without them,
    spaCy gives equal words the similarity 1. spaCy drops hooks in `to_bytes` and with `n_process`,
    and computes `vector_norm` from `vector`."""
    for hooks in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
        hooks["vector"] = _hook_vector
        hooks["has_vector"] = _hook_has_vector
        hooks["similarity"] = _hook_similarity


def _hook_vector(item: Item) -> Floats1d:
    doc = _get_doc(item)
    has_tensor = doc.tensor is not None and len(doc.tensor) == len(doc)
    if has_tensor and not (get_entries(doc) and _has_key(item, _get_last(doc)[1]["key"])):
        # `Span.as_doc` copies the hooks and its part of the tensor. Of merged tokens, spaCy's
        # retokenizer keeps the row of the last one.
        return _average(_take_rows(item, doc.tensor))
    if isinstance(item, Span) and _is_merged_now(item):
        raise ValueError(
            f"Tokens ('{item.text[:50]}') are merged after 'elmo' ran. With `vector_hooks`, spaCy "
            "would write a contextual vector into the table of static vectors. Merge tokens "
            "before 'elmo', or leave `vector_hooks` out and read `span._.elmo`."
        )
    return _average(get_vectors(item))


def _is_merged_now(span: Span) -> bool:
    """Whether spaCy's retokenizer asks for a vector, to write it into the table of static vectors.
    By then, it has replaced `doc.tensor` by a copy without the rows of merged tokens."""
    doc, tensor = span.doc, span.doc.tensor
    _, entry = _get_last(doc)
    if not doc.vocab.vectors_length or tensor is entry["mix"] or tensor is None or not len(tensor):
        return False
    if len(tensor) == len(doc):
        # No rows go where only single tokens are "merged". On a GPU, the mix always is a copy.
        is_copy = isinstance(tensor, np.ndarray) and np.array_equal(tensor[-1], entry["mix"][-1])
        if not is_copy or len(span) != 1:
            return False
    return not doc.vocab.get_vector(span.text).any()


def _hook_has_vector(item: Item) -> bool:
    return True


def _hook_similarity(item: Item, other: Any) -> float:
    # One of them may be on a GPU.
    return _cosine(item, other, to_numpy(item.vector), to_numpy(other.vector))


def _cosine(item: Item, other: Any, a: NDArray, b: NDArray) -> float:
    """Of the vectors of two items; 0 if one of them is zero."""
    if a.shape != b.shape:
        texts = [getattr(each, "text", "")[:50] for each in (item, other)]
        raise ValueError(
            f"The vectors of '{texts[0]}' and '{texts[1]}' have different widths, {len(a)} and "
            f"{len(b)}. Compare docs, spans and tokens of the same pipeline: lexemes have no "
            "contextual vectors, nor have docs that 'elmo' has not read."
        )
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms else 0.0
