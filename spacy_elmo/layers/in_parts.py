"""`in_parts`: what is computed of many docs in prediction, for some of them at a time."""

from functools import partial
from typing import Any, Callable, List, Sequence, Sized, Tuple

from spacy.tokens import Doc
from thinc.api import Model, NumpyOps
from thinc.types import Floats2d

from ..utils import split_by_size
from .elmo_layers import LAYERS_NAME, no_backprop

Tok2VecModel = Model[List[Doc], List[Floats2d]]
Forward = Callable[[Any, List[Doc], bool], Tuple[List[Floats2d], Callable]]
# All layers of so many tokens of the bundled biLM are 6 MB: what is made of them on the way stays
# in a processor's cache, and in memory that the process has. Beyond some tens of megabytes the
# system has to find it page by page, for each array anew.
PART_TOKENS = 1024


def in_parts(model: Tok2VecModel) -> Tok2VecModel:
    """Have a model read some docs at a time in prediction. Training stays as it is.

    model (Tok2VecModel): of docs that do not depend on each other. It is changed.
    RETURNS (Tok2VecModel): the same model.
    """
    model._func = partial(in_parts_forward, read=model._func)
    return model


def in_parts_forward(
    model: Tok2VecModel, docs: List[Doc], is_train: bool, *, read: Forward
) -> Tuple[List[Floats2d], Callable]:
    """docs (List[Doc]): any docs, empty ones too. read (Callable): the model's own forward.
    RETURNS (Tuple[List[Floats2d], Callable]): what it returns for all docs, with no way back where
        it read parts of them."""
    if is_train or not _gains(model, docs):
        return read(model, docs, is_train)
    # Several of spaCy's layers cannot read a part that has no token.
    parts = split_by_size([doc for doc in docs if len(doc)], len, PART_TOKENS)
    Ys = [Y for part in parts for Y in read(model, part, False)[0]]
    empty, rest = Ys[0][:0], iter(Ys)
    return [next(rest) if len(doc) else empty for doc in docs], no_backprop


def predict_in_parts(
    model: Model[List[Floats2d], List[Floats2d]], Xs: Sequence[Floats2d]
) -> List[Floats2d]:
    """model (Model[List[Floats2d], List[Floats2d]]): for arrays that do not depend on each other.
    Xs (Sequence[Floats2d]): any. RETURNS (List[Floats2d]): as its `predict`."""
    if not _gains(model, Xs):
        return model.predict(list(Xs))
    return [Y for part in split_by_size(Xs, len, PART_TOKENS) for Y in model.predict(part)]


def _gains(model: Model, items: Sequence[Sized]) -> bool:
    """RETURNS (bool): Whether parts are faster: of more than fit into one, not on a GPU, and not
    with a biLM inside (`nlp.replace_listeners`), which reads many sequences side by side."""
    if sum(map(len, items)) <= PART_TOKENS or not isinstance(model.ops, NumpyOps):
        return False
    return all(node.name != LAYERS_NAME for node in model.walk())
