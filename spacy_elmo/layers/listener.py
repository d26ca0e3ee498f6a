"""`ElmoListener`: hands a task the layers of an upstream "elmo" component."""

from typing import Any, Callable, Dict, List, Tuple, cast

from spacy.pipeline.tok2vec import Tok2VecListener
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d

from ..errors import Errors, Warnings
from .doc_store import get_entries, read_layers
from .elmo_layers import no_backprop
from .watched import (
    compare_weights,
    get_upstream,
    note_sent,
    require_sent,
    require_width,
    warn_missing,
    watch,
)

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
