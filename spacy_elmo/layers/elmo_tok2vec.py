"""Parts of `ElmoTok2Vec` around ELMo: the encoder with its sources, static vectors."""

from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, Callable, List, Optional, Sequence, Tuple, cast

import numpy as np
import torch
from spacy.attrs import ORTH
from spacy.ml.staticvectors import StaticVectors
from spacy.tokens import Doc
from spacy.vectors import Mode, Vectors
from thinc.api import (
    LayerNorm,
    Linear,
    Model,
    NumpyOps,
    chain,
    concatenate,
    ragged2list,
    with_array,
)
from thinc.layers.chain import forward as chain_forward
from thinc.layers.concatenate import forward as concatenate_forward
from thinc.layers.with_array import forward as with_array_forward
from thinc.types import Floats2d, Ints1d
from torch import Tensor

from ..errors import Errors
from ..inference.threads import choose_n_threads, run_parallel
from ..utils import require_least, split_by_size
from .elmo_layers import LAYERS_NAME, get_embedder
from .scalar_mix import PART_TOKENS, make_mix, mixed_layers_forward
from .torch_rows import Rows, RowsFinder, apply_padded, get_tensor
from .word_features import Tok2VecModel, WordFeatures

# Rows of some of the docs that are read, those from one index to another.
PartRows = Callable[[int, int], Tensor]
Forward = Callable[[Any, Any, bool], Tuple[List[Floats2d], Callable]]
# Attribute of a listener with its mix: "input" or "output".
PLACE = "place"
# In a model without an encoder, the layer whose vectors skip the encoder of the task.
SKIP = "past"
# Attribute of an encoder with its sources.
_KEPT = "kept"
# Tokens that are worth a thread.
_LEAST_TOKENS = 128


def get_skip_width(tok2vec: Tok2VecModel) -> int:
    """How many of the last numbers of a `tok2vec` skip the encoder of the task: those of `output`
    without `encode`."""
    skip = tok2vec.maybe_get_ref(SKIP) if isinstance(tok2vec, Model) else None
    return 0 if skip is None else skip.get_dim("nO")


def join(*sources: Tok2VecModel) -> Tok2VecModel:
    """Concatenate the rows of models, at least one."""
    if len(sources) == 1:
        return sources[0]
    joined: Tok2VecModel = concatenate(*sources)
    # spaCy's embedding layers get theirs when they are initialized.
    if all(source.has_dim("nO") for source in sources):
        joined.set_dim("nO", sum(source.get_dim("nO") for source in sources), force=True)
    return joined


@dataclass
class _Kept:
    """What an encoder and its sources keep between predictions. A dataclass, so that Thinc does not
    store it with the weights."""

    words: WordFeatures
    norm: RowsFinder
    encoder: RowsFinder


def encode_rows(
    read: Tok2VecModel, encode: Model[List[Floats2d], List[Floats2d]], *, has_features_alone: bool
) -> Tok2VecModel:
    """Put an encoder behind `read`, with a map between them if they differ in width."""
    width = encode.get_dim("nO")
    # spaCy's encoders read as many numbers as they write, and so do its word features.
    between: List[Model] = (
        [] if has_features_alone else [with_array(chain(Linear(nO=width), LayerNorm(nI=width)))]
    )
    encoded: Tok2VecModel = chain(read, *between, encode)
    encoded.set_dim("nO", width, force=True)
    encoded.attrs[_KEPT] = _Kept(WordFeatures(), RowsFinder(), RowsFinder())
    encoded._func = encode_rows_forward
    return encoded


def encode_rows_forward(
    model: Tok2VecModel, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    """As Thinc's `chain`. In prediction on a processor, torch computes the layers that it knows,
    some docs at a time, in the threads of the biLM."""
    if is_train or not isinstance(model.ops, NumpyOps):
        return chain_forward(model, docs, is_train)
    filled = [doc for doc in docs if len(doc)]
    Ys = iter(_encode(model, filled) if filled else [])
    empty = model.ops.alloc2f(0, model.get_dim("nO"))
    return [next(Ys) if len(doc) else empty for doc in docs], _no_gradient


def _encode(model: Tok2VecModel, docs: List[Doc]) -> List[Floats2d]:
    """Predict docs that have tokens."""
    read, *between, encode = model.layers
    sources = read.layers if read._func is concatenate_forward else [read]
    kept: _Kept = model.attrs[_KEPT]
    sources_rows = [_read_source(source, docs, kept.words) for source in sources]
    map_rows = _make_map(between[0], kept.norm) if between else None
    rows = kept.encoder.find(encode.layers[0]) if encode._func is with_array_forward else None
    lengths = [len(doc) for doc in docs]

    def read_part(start: int, end: int) -> List[Floats2d]:
        Xs = [part_rows(start, end) for part_rows in sources_rows]
        Y = torch.cat(Xs, dim=1) if map_rows is None else map_rows(Xs)  # (n_tokens, width)
        if rows is not None:
            Y = apply_padded(rows, Y, lengths[start:end], encode.attrs["pad"])
        return cast(List[Floats2d], [Z.numpy() for Z in Y.split(lengths[start:end])])

    n_threads = _get_n_threads(sources)
    most = min(PART_TOKENS, max(_LEAST_TOKENS, -(-sum(lengths) // n_threads)))
    ends = [0, *accumulate(len(part) for part in split_by_size(docs, len, most))]
    tasks = [partial(read_part, *places) for places in pairwise(ends)]
    Ys = [Y for part in run_parallel(tasks, n_threads) for Y in part]
    return in_parts_forward(encode, Ys, False, read=encode._func)[0] if rows is None else Ys


def _read_source(source: Tok2VecModel, docs: List[Doc], features: WordFeatures) -> PartRows:
    """Read what one source knows of docs."""
    ends = [0, *accumulate(map(len, docs))]
    found = features.read(source, docs)
    if found is not None:
        table, ids = found
        return lambda start, end: table.index_select(0, ids[ends[start] : ends[end]])
    mix: Rows = _identity
    if source._func is mixed_layers_forward:
        source, mix_model = source.layers
        mix = make_mix(mix_model)
        Xs: Any = source.predict(docs)
    else:
        Xs = in_parts_forward(source, docs, False, read=source._func)[0]
    return lambda start, end: mix(torch.from_numpy(np.concatenate(Xs[start:end])))


def _identity(X: Tensor) -> Tensor:
    return X


def _make_map(between: Model, finder: RowsFinder) -> Callable[[List[Tensor]], Tensor]:
    """The map from the sources to the width of the encoder. Their rows are not concatenated."""
    linear, norm = between.layers[0].layers
    W, b = get_tensor(linear, "W"), get_tensor(linear, "b")
    normalise = cast(Rows, finder.find(norm))

    def map_rows(Xs: List[Tensor]) -> Tensor:
        Y = b
        for X, weight in zip(Xs, W.split([X.size(1) for X in Xs], dim=1)):
            Y = torch.addmm(Y, X, weight.t())
        return normalise(Y)  # (n_tokens, width)

    return map_rows


def _get_n_threads(sources: List[Tok2VecModel]) -> int:
    """Threads of the biLM that is listened to, or is a source."""
    for source in sources:
        if source._func is mixed_layers_forward:
            layers = source.layers[0]
            layers = getattr(layers, "upstream_layers", None) or layers
            if layers.shims or layers.layers:
                return choose_n_threads(get_embedder(layers).n_threads)
    return choose_n_threads(0)


def in_parts(model: Tok2VecModel) -> Tok2VecModel:
    """Have a model, changed in place, predict some docs at a time. Training is unchanged."""
    model._func = partial(in_parts_forward, read=model._func)
    return model


def in_parts_forward(
    model: Model, docs: Sequence[Any], is_train: bool, *, read: Forward
) -> Tuple[List[Floats2d], Callable]:
    """Call `read`, the model's own forward, with all docs, or arrays of their rows, in training,
    else with some at a time."""
    if is_train or sum(map(len, docs)) <= PART_TOKENS or not isinstance(model.ops, NumpyOps):
        return read(model, docs, is_train)
    if any(node.name == LAYERS_NAME for node in model.walk()):
        # A biLM, as after `nlp.replace_listeners`, reads many sequences side by side.
        return read(model, docs, is_train)
    # Several of spaCy's layers cannot read a part without tokens.
    parts = split_by_size([doc for doc in docs if len(doc)], len, PART_TOKENS)
    Ys = [Y for part in parts for Y in read(model, part, False)[0]]
    empty, rest = Ys[0][:0], iter(Ys)
    return [next(rest) if len(doc) else empty for doc in docs], _no_gradient


def _no_gradient(dYs: List[Floats2d]) -> List[Doc]:
    return []


# Static vectors


def build_static_vectors_v1(*, width: int = 96) -> Tok2VecModel:
    """Map the static vectors of the pipeline (`vocab.vectors`, default or floret) to a width.

    width (int): numbers a token, at least 1.
    RETURNS (Tok2VecModel): docs -> arrays of shape (n_tokens, width), without a bias: zeros for a
        word that has no vector.
    RAISES (ValueError): EL012 for a `width` below 1.
    """
    require_least("width", width, 1)
    return Model(
        "pipeline_vectors",
        static_vectors_forward,
        init=_init_static_vectors,
        layers=[StaticVectors(nO=width), ragged2list()],
        dims={"nO": width},
    )


def _init_static_vectors(model: Tok2VecModel, X: Optional[List[Doc]] = None, Y: Any = None) -> None:
    model.layers[0].initialize(X=X)


def static_vectors_forward(
    model: Tok2VecModel, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    if not any(len(doc) for doc in docs):
        # spaCy's layer does not say how many docs there were.
        return [model.ops.alloc2f(0, model.get_dim("nO")) for _ in docs], _no_gradient
    if not len(docs[0].vocab.vectors):
        # spaCy's layer would say that an index is out of bounds.
        raise ValueError(Errors.EL186.format(name="spacy-elmo.StaticVectors.v1"))
    table, as_list = model.layers
    rows, backprop_table = table(docs, is_train)
    Xs, backprop_list = as_list(rows, is_train)

    def backprop(dYs: List[Floats2d]) -> Any:
        dY: Any = backprop_list(dYs)
        vectors = docs[0].vocab.vectors
        if isinstance(vectors, Vectors) and vectors.mode == Mode.default:
            # For words without a vector, spaCy's layer takes the last one of the table. In tables
            # of floret all words have one.
            attr = getattr(vectors, "attr", ORTH)
            keys = model.ops.flatten([cast(Ints1d, doc.to_array(attr)) for doc in docs])
            dY.data[vectors.find(keys=keys) < 0] = 0.0
        return backprop_table(dY)

    return cast(List[Floats2d], Xs), backprop
