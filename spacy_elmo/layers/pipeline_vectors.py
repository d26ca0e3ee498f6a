"""`pipeline_vectors`: the static vectors of the pipeline, beside ELMo."""

from typing import Any, Callable, List, Optional, Tuple, cast

from spacy.attrs import ORTH
from spacy.ml.staticvectors import StaticVectors
from spacy.tokens import Doc
from spacy.vectors import Mode, Vectors
from thinc.api import Model, ragged2list
from thinc.types import Floats2d, Ints1d

from ..errors import Errors
from ..utils import require_least
from .elmo_layers import no_backprop
from .elmo_tok2vec import Tok2VecModel


def pipeline_vectors(width: int) -> Tok2VecModel:
    """Make the layer: spaCy's `StaticVectors`, whose rows are those of docs. See
    `build_static_vectors_v1`."""
    require_least("width", width, 1)
    return Model(
        "pipeline_vectors",
        pipeline_vectors_forward,
        init=_init,
        layers=[StaticVectors(nO=width), ragged2list()],
        dims={"nO": width},
    )


def _init(model: Tok2VecModel, X: Optional[List[Doc]] = None, Y: Any = None) -> None:
    model.layers[0].initialize(X=X)


def pipeline_vectors_forward(
    model: Tok2VecModel, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    """docs (List[Doc]): any docs, empty ones too.
    RETURNS (Tuple[List[Floats2d], Callable]): arrays of shape (n_tokens, width), and the
        backprop to the map from vectors to them.
    RAISES (ValueError): EL332 if the pipeline has no static vectors.
    """
    if not any(len(doc) for doc in docs):
        # spaCy's layer does not say how many docs there were.
        return [model.ops.alloc2f(0, model.get_dim("nO")) for _ in docs], no_backprop
    if not len(docs[0].vocab.vectors):
        # spaCy's layer would say that an index is out of bounds.
        raise ValueError(Errors.EL332)
    table, as_list = model.layers
    rows, backprop_table = table(docs, is_train)
    Xs, backprop_list = as_list(rows, is_train)

    def backprop(dYs: List[Floats2d]) -> Any:
        dY = backprop_list(dYs)
        _leave_out_unknown(model, docs, dY.data)
        return backprop_table(dY)

    return cast(List[Floats2d], Xs), backprop


def _leave_out_unknown(model: Tok2VecModel, docs: List[Doc], dY: Any) -> None:
    """Set gradients of words without a vector to 0: spaCy's layer takes the table's last one for
    them. In floret's tables all words have one.

    dY (Any): shape (n_tokens, width); changed in place.
    """
    vectors = docs[0].vocab.vectors
    if isinstance(vectors, Vectors) and vectors.mode == Mode.default:
        attr = getattr(vectors, "attr", ORTH)
        keys = model.ops.flatten([cast(Ints1d, doc.to_array(attr)) for doc in docs])
        dY[vectors.find(keys=keys) < 0] = 0.0
