"""`mixed_layers`: what has the layers of a biLM, and a mix of them."""

from typing import Any, Callable, List, Tuple, cast

from spacy.tokens import Doc
from thinc.api import Model, chain
from thinc.types import Floats2d

from .elmo_layers import no_backprop
from .in_parts import predict_in_parts
from .scalar_mix import MixModel


def mixed_layers(source: Any, mix: MixModel) -> Model[List[Doc], List[Floats2d]]:
    """Chain a biLM or a listener and a mix, but for one thing: gradients of the layers, as
    wide as all of them, are not computed for a biLM that does not learn. They would take some tenth
    of the time of an update.

    source (Any): docs -> layers, List[Floats2d]. Thinc's `replace_listeners` may put another one in
        its place.
    mix (MixModel): from `scalar_mix`: its backprop takes `to_layers`.
    RETURNS (Model[List[Doc], List[Floats2d]]): docs -> what the mix makes of their layers.
    """
    model: Model = chain(source, mix)
    model._func = mixed_layers_forward
    return model


def mixed_layers_forward(
    model: Model, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    """docs (List[Doc]): any docs, empty ones too.
    RETURNS (Tuple[List[Floats2d], Callable]): for each doc what the mix makes of its layers, and
        the way back to the mix and, if it learns, to the biLM.
    """
    source, mix = model.layers
    Xs, backprop_layers = source(docs, is_train)
    if not is_train:
        return predict_in_parts(mix, Xs), no_backprop
    Ys, backprop_mix = mix(Xs, is_train)

    def backprop(dYs: List[Floats2d]) -> List[Doc]:
        if backprop_layers is no_backprop:
            backprop_mix(dYs, to_layers=False)
            return []
        return cast(List[Doc], backprop_layers(backprop_mix(dYs)))

    return Ys, backprop
