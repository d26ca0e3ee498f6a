"""`ElmoListener`: hands a task the layers of an upstream "elmo" component."""

import warnings
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Set, Tuple, cast
from weakref import ReferenceType, ref

from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from ..errors import Errors, Warnings
from .doc_data import WEIGHTS, get_entries, read_layers, require_key
from .elmo_layers import no_backprop

Forward = Callable[..., Tuple[List[Floats2d], Callable]]
_WATCH = "watch"


@dataclass
class Watch:
    """What is known of a listener. A dataclass, so that Thinc does not store it with the
    weights.

    upstream (str): name of the component that sends the vectors.
    forward (Forward): what the listener does.
    sample (Tuple[ReferenceType, ...]): the docs of shape inference, as long as they live.
    has_warned (bool): whether its user was told.
    sent (str): weights that made what it was sent in training; "" if they learn, too.
    told (Set[str]): other weights of which its user was told.
    """

    upstream: str
    forward: Forward
    sample: Tuple["ReferenceType[Doc]", ...] = ()
    has_warned: bool = False
    sent: str = ""
    told: Set[str] = field(default_factory=set)

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
        # Saved with the model: the weights whose vectors it has learned from.
        listener.attrs.setdefault(WEIGHTS, "")
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
    """Do what spaCy's own listener does, with a look at the vectors that it will read. RAISES
    (ValueError): EL340 for docs that it was not sent in training, EL115 for vectors of another
    width, EL050 for docs whose tokens were changed since."""
    is_sent = is_train and cast(Any, model)._batch_id is not None
    if is_sent:
        require_sent(model, docs)
        note_sent(model)
    for doc in () if is_sent else docs:
        # spaCy's `doc_cleaner` sets None.
        if doc.tensor is not None and doc.tensor.size:
            require_width(model, doc, doc.tensor.shape[-1])
            _require_tokens(model, doc)
            compare_weights(model, doc, is_train)
        elif not is_train:
            warn_missing(model, doc, Warnings.WL016)
    return cast(Watch, model.attrs[_WATCH]).forward(model, docs, is_train)


def require_sent(model: Model, docs: List[Doc]) -> None:
    """model (Model): a listener that was sent a batch. docs (List[Doc]): what it learns from.
    RAISES (ValueError): EL340 if that was another batch: the component has not run since."""
    listener = cast(Tok2VecListener, model)
    if listener._batch_id != listener.get_batch_id(docs):
        raise ValueError(Errors.EL340.format(upstream=get_upstream(model)))


def _require_tokens(model: Model, doc: Doc) -> None:
    upstream = get_upstream(model)
    entry = get_entries(doc).get(upstream)
    # spaCy's retokenizer keeps the last row of what it merges.
    if entry is not None:
        require_key(doc, entry["key"], upstream)


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


def send_weights(model: Model, weights: Optional[str]) -> None:
    """model (Model): a listener that is sent vectors in training, and may not be asked for them.
    weights (Optional[str]): those that made them, as `identify` says; None if they learn, too."""
    cast(Watch, model.attrs[_WATCH]).sent = weights or ""


def note_sent(model: Model) -> None:
    """model (Model): a listener that learns from what it was sent."""
    model.attrs[WEIGHTS] = cast(Watch, model.attrs[_WATCH]).sent


def compare_weights(model: Model, doc: Doc, is_train: bool) -> None:
    """Compare the weights that made what a listener reads with those that it has learned with.

    model (Model): a listener.
    doc (Doc): with the vectors that it reads. Where nobody said what made them, nothing is done.
    is_train (bool): whether it learns from them; otherwise it is told, once for each, that they
        are of other weights (WL069).
    """
    state = cast(Watch, model.attrs[_WATCH])
    weights = get_entries(doc).get(state.upstream, {}).get(WEIGHTS, "")
    expected = model.attrs.get(WEIGHTS, "")
    if is_train:
        model.attrs[WEIGHTS] = weights
    elif expected and weights and weights != expected and weights not in state.told:
        state.told.add(weights)
        warnings.warn(Warnings.WL069.format(upstream=state.upstream), stacklevel=2)


# Listeners with a mix, and the component's architecture with a mix of the same kind.
LISTENER_ARCHITECTURES = {
    "spacy-elmo.ElmoListener.v1": "spacy-elmo.Elmo.v1",
    "spacy-elmo.ElmoListener.v2": "spacy-elmo.Elmo.v2",
}
TOK2VEC_ARCHITECTURES = ("spacy-elmo.ElmoTok2Vec.v1", "spacy-elmo.ElmoTok2Vec.v2")


class ElmoListener(Tok2VecListener):
    """Receive layers in training, read `doc._.elmo` otherwise.

    A subclass, so that spaCy links it like its own listener. `doc.tensor` is not read:
    another component may have overwritten it.
    """

    name = "elmo-listener"

    def __init__(self, upstream_name: str, n_layers: int, width: int) -> None:
        """upstream_name (str): name of the "elmo" component.
        n_layers (int): layers that it sends, the word layer counted.
        width (int): width of one layer.
        RAISES (ValueError): EL002 for "*", which any tok2vec would claim.
        """
        if upstream_name == "*":
            raise ValueError(Errors.EL002)
        super().__init__(upstream_name=upstream_name, width=n_layers * width)
        watch(self, upstream_name, elmo_listener_forward)

    @classmethod
    def get_batch_id(cls, inputs: Any) -> int:
        """RETURNS (int): A number for a batch, other for the same docs in other order."""
        return hash(tuple(tuple(token.orth for token in doc) for doc in inputs))


def elmo_listener_forward(
    model: ElmoListener, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    """docs (List[Doc]): any docs, empty ones too.
    RETURNS (Tuple[List[Floats2d], Callable]): for each doc shape
        (n_tokens, n_layers * width), and the way back to the component.
    RAISES (ValueError): in training, EL003 if the component has sent no layers of these docs, EL340
        if it has sent those of others.
    """
    if is_train and model._batch_id is not None:
        require_sent(model, docs)
        note_sent(model)
        return cast(Any, (model._outputs, model._backprop))
    return [_get_layers(model, doc, is_train) for doc in docs], no_backprop


def _get_layers(model: Model, doc: Doc, is_train: bool) -> Floats2d:
    width, upstream = model.get_dim("nO"), get_upstream(model)
    layers = read_layers(doc, upstream)
    if layers is not None:
        require_width(model, doc, layers.shape[1] * layers.shape[2])
        compare_weights(model, doc, is_train)
        return model.ops.reshape2f(layers, len(doc), width)
    if is_train and len(doc):
        raise ValueError(Errors.EL003.format(upstream=upstream))
    has_run = upstream in get_entries(doc)
    warn_missing(model, doc, Warnings.WL017 if has_run else Warnings.WL016)
    return model.ops.alloc2f(len(doc), width)


def replace_listener(copied: Model, listener: Model, component: Any) -> Model:
    """Give spaCy what takes a listener's place in `nlp.replace_listeners`.

    copied (Model): a copy of the component's model, `elmo_layers` and its mix.
    listener (Model): what is replaced. An `ElmoListener` has its own mix behind it,
        and gets the layers; a stock listener gets the whole.
    component (Any): the "elmo" component.
    RETURNS (Model): the replacement.
    """
    return copied.layers[0] if isinstance(listener, ElmoListener) else copied


def replace_listener_config(elmo: Dict[str, Any], tok2vec: Dict[str, Any]) -> Dict[str, Any]:
    """Make the config of a replaced listener: the component's model, with the mix keys
    of the listener if that had its own mix.

    elmo (Dict[str, Any]): [components.elmo.model].
    tok2vec (Dict[str, Any]): [components.<name>.model.tok2vec] before the replacement.
        Of an `ElmoTok2Vec`, spaCy does not say which listener is meant: it is the first
        one left, so their paths are given input first.
    RETURNS (Dict[str, Any]): a block of `Elmo.v2`, or of the listener's older version.
    """
    listener = _find_listener_block(tok2vec)
    if not listener:
        return elmo
    mix = {key: listener[key] for key in MIX_KEYS if key in listener}
    others = {key: value for key, value in elmo.items() if key not in MIX_KEYS}
    return {**others, "@architectures": LISTENER_ARCHITECTURES[listener["@architectures"]], **mix}


MIX_KEYS = (
    "output", "initial_weights", "fixed_weights", "mix_l2", "mix_layer_norm", "mix_dropout",
)  # fmt: skip


def _find_listener_block(block: Dict[str, Any]) -> Dict[str, Any]:
    blocks = [block]
    if block.get("@architectures") in TOK2VEC_ARCHITECTURES:
        blocks = [block[key] for key in ("input", "output") if block.get(key)]
    for candidate in blocks:
        if candidate.get("@architectures") in LISTENER_ARCHITECTURES:
            return candidate
    return {}
