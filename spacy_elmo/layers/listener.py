"""Listeners: `ElmoListener` hands a task the layers of an "elmo" component; spaCy's own listener is
checked for vectors that are missing or do not fit."""

import warnings
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple, cast
from weakref import WeakSet

from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.pipeline.tok2vec import forward as tok2vec_listener_forward
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from ..errors import Errors, Warnings
from .doc_data import get_entries, get_layers, require_key

# Listeners with a mix, and the component's architecture with a mix of the same kind.
LISTENER_ARCHITECTURES = {
    "spacy-elmo.ElmoListener.v1": "spacy-elmo.Elmo.v1",
    "spacy-elmo.ElmoListener.v2": "spacy-elmo.Elmo.v2",
}
TOK2VEC_ARCHITECTURES = ("spacy-elmo.ElmoTok2Vec.v1", "spacy-elmo.ElmoTok2Vec.v2")
MIX_KEYS = (
    "output", "initial_weights", "fixed_weights", "mix_l2", "mix_layer_norm", "mix_dropout",
)  # fmt: skip

# Docs of shape inference, which run through the listeners before any component has run.
_shape_samples: "WeakSet[Doc]" = WeakSet()


@dataclass
class ListenerSettings:
    """State of a listener: the name of its component, whether the biLM there is frozen and needs no
    gradients, and whether missing vectors were reported. A dataclass, so that Thinc does not store
    it with the weights, and in `attrs`, so that copies of the model have it."""

    upstream: str
    frozen: bool = True
    has_warned: bool = False


class ElmoListener(Tok2VecListener):
    """Receive layers in training, read `doc._.elmo` otherwise.

    A subclass, so that spaCy links it like its own listener. `doc.tensor` is not read:
    another component may have overwritten it.
    """

    name = "elmo-listener"

    def __init__(self, upstream_name: str, n_layers: int, width: int) -> None:
        """upstream_name (str): name of the "elmo" component; EL002 for "*", which any tok2vec would
            claim.
        n_layers (int): layers that it sends, the word layer counted.
        width (int): width of one layer.
        """
        if upstream_name == "*":
            raise ValueError(Errors.EL002)
        super().__init__(upstream_name=upstream_name, width=n_layers * width)
        self.attrs["settings"] = ListenerSettings(upstream_name)
        self._func = elmo_listener_forward
        self.init = remember_sample
        # The component's model of layers, once it is linked. Not the component, which refers to its
        # listeners: a cycle would keep the biLM of a deleted pipeline in memory.
        self.upstream_layers: Optional[Model] = None

    @classmethod
    def get_batch_id(cls, inputs: Any) -> int:
        """A number for a batch, different for the same docs in another order."""
        return hash(tuple(tuple(token.orth for token in doc) for doc in inputs))


def elmo_listener_forward(
    model: ElmoListener, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    """For each doc the layers, shape (n_tokens, n_layers * width), and the backprop to the
    component. EL003 in training if that has not run on these docs."""
    if is_train and was_sent(model, docs):
        return cast(Any, (model._outputs, model._backprop))
    return [_read_layers(model, doc, is_train) for doc in docs], _no_gradient


def checked_listener_forward(
    model: Tok2VecListener, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    """Run spaCy's own listener after a look at the vectors that it will read."""
    upstream = model.attrs["settings"].upstream
    if is_train and was_sent(model, docs):
        return tok2vec_listener_forward(model, docs, is_train)
    for doc in docs:
        # spaCy's `doc_cleaner` sets None.
        if doc.tensor is not None and doc.tensor.size:
            _require_width(model, doc, doc.tensor.shape[-1])
            entry = get_entries(doc).get(upstream)
            if entry is not None:
                require_key(doc, entry["key"], upstream)
        elif is_train and len(doc):
            raise ValueError(Errors.EL003.format(upstream=upstream))
        else:
            _warn_missing(model, doc)
    # As in prediction, also in training: what the docs have.
    return tok2vec_listener_forward(model, docs, False)


def check_listener(listener: Tok2VecListener, upstream: str) -> None:
    """Have a listener of spaCy's own look at what it reads. Harmless when done before."""
    settings = listener.attrs.get("settings")
    if settings is None or settings.upstream != upstream:
        listener.attrs["settings"] = ListenerSettings(upstream)
    listener._func = checked_listener_forward
    listener.init = remember_sample


def remember_sample(model: Model, X: Any = None, Y: Any = None) -> None:
    """Initialize with docs for shape inference."""
    _shape_samples.update(X or ())


def was_sent(model: Any, docs: List[Doc]) -> bool:
    """Whether a listener was sent this batch last. If it was not, the component may have run on the
    docs without training, as in [training] annotating_components."""
    return model._batch_id is not None and model._batch_id == model.get_batch_id(docs)


def _read_layers(model: Model, doc: Doc, is_train: bool) -> Floats2d:
    upstream = model.attrs["settings"].upstream
    layers = get_layers(doc, upstream)
    if layers is not None:
        _require_width(model, doc, layers.shape[1] * layers.shape[2])
        return model.ops.reshape2f(layers, len(doc), model.get_dim("nO"))
    if is_train and len(doc):
        raise ValueError(Errors.EL003.format(upstream=upstream))
    upstream_layers = getattr(model, "upstream_layers", None)
    has_tensor = doc.tensor is not None and len(doc.tensor)
    if upstream_layers is not None and has_tensor and not get_entries(doc):
        # A part that `Span.as_doc` made of a doc, as for spaCy's entity linker: only the tensor was
        # copied, and the layers are computed again.
        return cast(Floats2d, upstream_layers.predict([doc])[0])
    _warn_missing(model, doc)
    return model.ops.alloc2f(len(doc), model.get_dim("nO"))


def _require_width(model: Model, doc: Doc, width: int) -> None:
    expected = model.get_dim("nO")
    if width != expected:
        upstream, text = model.attrs["settings"].upstream, doc.text[:50]
        raise ValueError(
            Errors.EL115.format(upstream=upstream, expected=expected, text=text, found=width)
        )


def _warn_missing(model: Model, doc: Doc) -> None:
    settings: ListenerSettings = model.attrs["settings"]
    if settings.has_warned or doc in _shape_samples or not len(doc):
        return
    settings.has_warned = True
    known = ", ".join(f"'{name}'" for name in get_entries(doc)) or "none"
    text = Warnings.WL016.format(upstream=settings.upstream, text=doc.text[:50], known=known)
    warnings.warn(text, stacklevel=2)


def _no_gradient(dYs: List[Floats2d]) -> List[Doc]:
    return []


def replace_listener(copied: Model, listener: Model, component: Any) -> Model:
    """Choose the model that replaces a listener in `nlp.replace_listeners`, from a copy of the
    component's. An `ElmoListener` has its own mix behind it, and gets the layers alone."""
    return copied.layers[0] if isinstance(listener, ElmoListener) else copied


def replace_listener_config(elmo: Dict[str, Any], tok2vec: Dict[str, Any]) -> Dict[str, Any]:
    """Make the config of a replaced listener from [components.elmo.model], with the mix keys of the
    listener if that had its own mix. Of an `ElmoTok2Vec`, spaCy does not say which listener is
    meant: it is the first one left, so their paths are given input first."""
    blocks = [tok2vec]
    if tok2vec.get("@architectures") in TOK2VEC_ARCHITECTURES:
        blocks = [tok2vec[key] for key in ("input", "output") if tok2vec.get(key)]
    for listener in blocks:
        name = listener.get("@architectures")
        if name in LISTENER_ARCHITECTURES:
            mix = {key: listener[key] for key in MIX_KEYS if key in listener}
            others = {key: value for key, value in elmo.items() if key not in MIX_KEYS}
            return {**others, "@architectures": LISTENER_ARCHITECTURES[name], **mix}
    return elmo
