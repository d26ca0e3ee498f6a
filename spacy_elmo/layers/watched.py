"""Listeners that tell when nobody has sent them vectors, or when these are of other weights.

A listener without vectors hands on zeros: all tokens look the same, and a tagger gives them
the same tag. That is right while spaCy infers shapes, before any component has run, and a
mistake everywhere else. Vectors of other weights may have the right width and mean nothing to it.
"""

import warnings
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple, cast
from weakref import ReferenceType, ref

from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from ..errors import Errors, Warnings
from .doc_store import WEIGHTS, get_entries

Forward = Callable[..., Tuple[List[Floats2d], Callable]]
_WATCH = "watch"
# Of a listener, saved with its model: the weights whose vectors it learned from.
_WEIGHTS = "biLM"


@dataclass
class Watch:
    """What is known of a listener. A dataclass, so that Thinc does not store it with the
    weights.

    upstream (str): name of the component that sends the vectors.
    forward (Forward): what the listener does.
    sample (Tuple[ReferenceType, ...]): the docs of shape inference, as long as they live.
    has_warned (bool): whether its user was told.
    told (str): of which other weights its user was told.
    """

    upstream: str
    forward: Forward
    sample: Tuple["ReferenceType[Doc]", ...] = ()
    has_warned: bool = False
    told: str = ""

    def __getstate__(self) -> Dict[str, Any]:
        # Copies are made of what was initialized, and not while it is.
        return {**self.__dict__, "sample": ()}


def watch(listener: Tok2VecListener, upstream: str, forward: Forward) -> None:
    """Have a listener tell, once, that it gets no vectors. Harmless when done before.

    listener (Tok2VecListener): ours or spaCy's own.
    upstream (str): name of the component that it listens to.
    forward (Forward): what it does from now on.
    """
    before: Any = listener.attrs.get(_WATCH)
    if before is None or before.upstream != upstream:
        original = listener._func if before is None else before.forward
        listener.attrs[_WATCH] = Watch(upstream, original)
        # What Thinc calls; the listener's class sets it in the same way.
        listener._func = forward
        listener.init = remember_sample


def remember_sample(model: Model, X: Any = None, Y: Any = None) -> None:
    """X (Any): docs for shape inference."""
    cast(Watch, model.attrs[_WATCH]).sample = tuple(ref(doc) for doc in X or ())


def get_upstream(model: Model) -> str:
    """model (Model): a listener that is watched, or a copy. RETURNS (str): name of the component
    that sends the vectors."""
    return cast(Watch, model.attrs[_WATCH]).upstream


def stock_listener_forward(
    model: Model, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    """Do what spaCy's own listener does, with a look at the vectors that it will read."""
    if not is_train:
        for doc in docs:
            if doc.tensor.size:
                require_width(model, doc, doc.tensor.shape[-1])
                check_weights(model, doc)
            else:
                warn_missing(model, doc, Warnings.WL016)
    return cast(Watch, model.attrs[_WATCH]).forward(model, docs, is_train)


def require_width(model: Model, doc: Doc, width: int) -> None:
    """model (Model): a listener. doc (Doc): what it reads. width (int): of a row.
    RAISES (ValueError): EL115 if that is not what it was made for."""
    expected = model.get_dim("nO")
    if width != expected:
        raise ValueError(
            Errors.EL115.format(
                upstream=get_upstream(model), expected=expected, text=doc.text[:50], found=width
            )
        )


def warn_missing(model: Model, doc: Doc, message: str) -> None:
    """model (Model): a listener. doc (Doc): without vectors. message (str): what to say, unless
    there are no tokens or only shapes are wanted."""
    state = cast(Watch, model.attrs[_WATCH])
    is_sample = any(sample() is doc for sample in state.sample)
    if state.has_warned or is_sample or not len(doc):
        return
    state.has_warned = True
    known = ", ".join(f"'{name}'" for name in get_entries(doc)) or "nothing"
    text = message.format(upstream=state.upstream, text=doc.text[:50], known=known)
    warnings.warn(text, stacklevel=2)


def note_weights(model: Model, weights: Optional[str]) -> None:
    """model (Model): a listener that is trained. weights (Optional[str]): those whose vectors it
    reads, as `identify` says; None if they change, too."""
    if weights is None:
        model.attrs.pop(_WEIGHTS, None)
    else:
        model.attrs[_WEIGHTS] = weights


def check_weights(model: Model, doc: Doc) -> None:
    """model (Model): a listener. doc (Doc): with the vectors that it reads. Warns, once for each
    other weights, if it was trained on the vectors of others than made these (WL069)."""
    state, expected = cast(Watch, model.attrs[_WATCH]), model.attrs.get(_WEIGHTS)
    weights = get_entries(doc).get(state.upstream, {}).get(WEIGHTS)
    if expected and weights and weights not in (expected, state.told):
        state.told = weights
        warnings.warn(Warnings.WL069.format(upstream=state.upstream), stacklevel=2)
