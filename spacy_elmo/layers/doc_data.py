"""What a doc keeps: vectors, layers, custom attributes and hooks that read them."""

import warnings
from collections import UserDict
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Dict, Iterator, Mapping, NamedTuple, Optional, Tuple, Type, Union, cast
from weakref import ref

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IDX, ORTH
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span, Token
from thinc.api import to_numpy
from thinc.types import Floats1d, Floats2d, Floats3d

from ..errors import Errors, Warnings

_FUNCTIONS = ("method", "getter", "setter")


def add_extension(kind: Type[Union[Doc, Span, Token]], name: str, **settings: Any) -> None:
    """Register an attribute, unless it is there. Warns if it is another's (WL060), which stays:
    without it, whoever made it would fail.

    kind (Type[Union[Doc, Span, Token]]): what has it.
    name (str): of the attribute.
    **settings (Any): of `set_extension`.
    """
    if not kind.has_extension(name):
        kind.set_extension(name, **settings)
        return
    default, *functions = kind.get_extension(name)
    # A default may be an array, which cannot be compared as a whole.
    is_other = default is not settings.get("default")
    if is_other or functions != [settings.get(key) for key in _FUNCTIONS]:
        warnings.warn(Warnings.WL060.format(kind=kind.__name__, name=name), stacklevel=2)


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


class DocArrays(UserDict):
    """A dict of arrays, or of dicts of arrays, which says in one line what it is: spaCy prints
    it where it does not fit, as in `doc.to_json(underscore=["elmo"])`.

    It is made when a user reads it. What a doc keeps is a plain dict, so docs can be loaded
    where this package is not installed. No subclass of `dict`: those with arrays break spaCy's
    test for JSON.
    """

    def __repr__(self) -> str:
        return (
            f"<{_describe(self.data)}. Arrays are no JSON: take lists of what you need, by "
            "`.tolist()`, or keep docs with `DocBin(store_user_data=True)`>"
        )

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self.data)


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_describe(part)}" for key, part in value.items())
    shape = getattr(value, "shape", None)
    return repr(value) if shape is None else f"array of shape {shape}"


@dataclass(frozen=True)
class ArraysGetter:
    """name (str): of the extension."""

    name: str

    def __call__(self, doc: Doc) -> Optional[DocArrays]:
        """doc (Doc): any doc. RETURNS (Optional[DocArrays]): what was set, None if nothing was."""
        arrays = get_arrays(self.name, doc)
        return None if arrays is None else DocArrays(arrays)


@dataclass(frozen=True)
class ArraysSetter:
    """name (str): of the extension."""

    name: str

    def __call__(self, doc: Doc, arrays: Optional[Mapping[str, Any]]) -> None:
        """As `set_arrays`; what was read of another doc is kept as that keeps it."""
        set_arrays(self.name, doc, None if arrays is None else {**arrays})


def register_arrays(name: str) -> None:
    """Register an extension of docs that holds arrays; None where nothing is set.

    name (str): of the extension.
    """
    # No closures: spaCy sends extensions to other processes.
    add_extension(Doc, name, getter=ArraysGetter(name), setter=ArraysSetter(name))


def get_arrays(name: str, doc: Doc) -> Optional[Dict[str, Any]]:
    """name (str): of the extension. doc (Doc): any doc. RETURNS (Optional[Dict[str, Any]]): what
    was set, None if nothing was."""
    return cast(Dict, doc.user_data).get(_make_key(name))


def set_arrays(name: str, doc: Doc, arrays: Optional[Dict[str, Any]]) -> None:
    """name (str): of the extension. doc (Doc): any doc. arrays (Optional[Dict[str, Any]]): what
    to keep; copies and pickles of the doc have it, too."""
    cast(Dict, doc.user_data)[_make_key(name)] = arrays


def _make_key(name: str) -> Tuple[str, str, None, None]:
    # Where spaCy keeps the value of an extension that has no getter.
    return "._.", name, None, None


class _Made(NamedTuple):
    """mix ("ref[Floats2d]"): shape (n_tokens, width). name (str): of the component that made it.
    layers (Optional[Floats3d]): shape (n_tokens, n_layers, layer_width)."""

    mix: Any
    name: str
    layers: Optional[Floats3d]


# By the identity of the mix, as long as that lives.
_made: Dict[int, _Made] = {}


def note_mix(mix: Floats2d, name: str, layers: Optional[Floats3d]) -> None:
    """mix (Floats2d): shape (n_tokens, width), of a whole doc. name (str): of the component that
    made it. layers (Optional[Floats3d]): what it was made of, if that is kept."""
    key = id(mix)

    def forget(dead: Any) -> None:
        made = _made.get(key)
        # Another one may have its place by now.
        if made is not None and made.mix is dead:
            _made.pop(key, None)

    _made[key] = _Made(ref(mix, forget), name, layers)


def is_part_of_mix(doc: Doc) -> bool:
    """doc (Doc): any doc. RETURNS (bool): Whether its tensor is a mix, or a part of one.
    Retokenising makes a new tensor, and so does whoever overwrites it."""
    return _find(doc) is not None


def find_layers(doc: Doc, name: Optional[str] = None) -> Optional[Floats3d]:
    """doc (Doc): any doc. name (Optional[str]): a component; None for any. RETURNS
    (Optional[Floats3d]): the layers of the doc's tokens, shape (n_tokens, n_layers, layer_width),
    if its tensor is of that component, which has kept them."""
    made = _find(doc)
    if made is None or made.layers is None or name not in (None, made.name):
        return None
    whole: Any = made.mix()
    start = (_get_address(doc.tensor) - _get_address(whole)) // whole.strides[0]
    return made.layers[start : start + len(doc)]


def _find(doc: Doc) -> Optional[_Made]:
    tensor: Any = doc.tensor
    # spaCy's `doc_cleaner` sets None.
    if tensor is None:
        return None
    whole = tensor if tensor.base is None else tensor.base
    made = _made.get(id(whole))
    if made is None or made.mix() is not whole:
        return None
    # A view, on a GPU even after retokenising: spaCy moves rows in place there.
    are_rows = tensor.strides == whole.strides and len(tensor) == len(doc)
    return made if are_rows else None


def _get_address(array: Any) -> int:
    """Of the first number, on a GPU or not."""
    return array.ctypes.data if hasattr(array, "ctypes") else array.data.ptr


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


def set_hooks(doc: Doc) -> None:
    """Have `vector` and `similarity` of a doc, its spans and tokens read our vectors,
    also where the pipeline has static vectors.

    doc (Doc): the doc. spaCy drops hooks in `to_bytes` and with `n_process`.
    """
    for hooks, get_vector in (
        (doc.user_hooks, _get_doc_vector),
        (doc.user_span_hooks, _get_span_vector),
        (doc.user_token_hooks, get_token_vector),
    ):
        hooks["vector"] = get_vector
        hooks["has_vector"] = _has_vector
        hooks["similarity"] = _get_similarity


def _get_doc_vector(doc: Doc) -> Floats1d:
    return get_span_vector(doc[:])


def _get_span_vector(span: Span) -> Floats1d:
    """As `get_span_vector`; the mean of static vectors for `doc.retokenize`, which puts the vector
    of what it merges into their table. RAISES (ValueError): EL331 where it cannot be told."""
    doc, tensor = span.doc, cast(Any, span.doc.tensor)
    if doc.vocab.vectors_length and tensor is not None and len(tensor) and not is_part_of_mix(doc):
        # It is resized before the vectors are read.
        if len(tensor) != len(doc):
            return _get_static_vector(span)
        if len(span) == 1 and _has_last_row(doc) and not _get_static_vector(span).any():
            raise ValueError(Errors.EL331.format(text=span.text[:50]))
    return get_span_vector(span)


def _has_last_row(doc: Doc) -> bool:
    """Whether the last row of a doc's tensor is that of ELMo's vectors, which `doc.retokenize`
    keeps."""
    entries = list(get_entries(doc).values())
    if not entries:
        return False
    return np.array_equal(to_numpy(doc.tensor[-1]), to_numpy(entries[-1]["mix"][-1]))


def _get_static_vector(span: Span) -> Floats1d:
    """RETURNS (Floats1d): The mean over the tokens, as spaCy has it without hooks."""
    vocab = span.doc.vocab
    keys = cast(Any, span).to_array([getattr(vocab.vectors, "attr", ORTH)]).ravel()
    vectors: Any = [vocab.get_vector(int(key)) for key in keys]
    return sum(vectors) / max(1, len(vectors))


def _has_vector(item: Union[Doc, Span, Token]) -> bool:
    return True


def _get_similarity(item: Union[Doc, Span, Token], other: Any) -> float:
    """The cosine, 0 if one of the vectors is zero. RAISES (ValueError): EL305 for vectors of
    different widths."""
    # One of them may be of a GPU.
    a, b = to_numpy(item.vector), to_numpy(other.vector)
    if a.shape != b.shape:
        texts = [getattr(each, "text", "")[:50] for each in (item, other)]
        raise ValueError(
            Errors.EL305.format(item=texts[0], other=texts[1], width=len(a), other_width=len(b))
        )
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms else 0.0
