"""Whose vectors a tensor has: `Span.as_doc` keeps a part of its doc's tensor, and nothing else that
would tell who made it. spaCy's entity linker predicts from such docs."""

from typing import Any, Dict, NamedTuple, Optional
from weakref import ref

from spacy.tokens import Doc
from thinc.types import Floats2d, Floats3d


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
