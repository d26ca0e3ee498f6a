"""`elmo_tok2vec`: ELMo before an encoder, behind it, or both."""

from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Tuple, cast

import numpy as np
import srsly
from numpy.typing import NDArray
from spacy.attrs import ORTH
from spacy.ml.staticvectors import StaticVectors
from spacy.tokens import Doc
from spacy.vectors import Mode, Vectors
from thinc.api import (
    LayerNorm,
    Linear,
    Model,
    chain,
    concatenate,
    deserialize_attr,
    ragged2list,
    serialize_attr,
    with_array,
)
from thinc.types import Floats2d, Ints1d

from ..errors import Errors
from ..files import unpack
from ..utils import require_least
from .elmo_layers import no_backprop
from .scalar_mix import in_parts

Tok2VecModel = Model[List[Doc], List[Floats2d]]
# Attribute with the words of all training so far.
_SEEN = "seen"
_NOTHING = np.zeros(0, dtype="uint64")


@dataclass
class SeenWords:
    """hashes (NDArray): of words, sorted, each once, uint64, shape (n_words,)."""

    hashes: NDArray


@serialize_attr.register(SeenWords)
def serialize_seen(_: SeenWords, value: SeenWords, name: str, model: Model) -> bytes:
    """value (SeenWords): an attribute. RETURNS (bytes): its hashes, as version 0.1.0 did."""
    return srsly.msgpack_dumps(value.hashes)


@deserialize_attr.register(SeenWords)
def deserialize_seen(_: SeenWords, value: bytes, name: str, model: Model) -> SeenWords:
    """value (bytes): from `serialize_seen`. RETURNS (SeenWords): the same. RAISES (ValueError):
    EL116 for anything else: what is not sorted would be found in the wrong place."""
    hashes = unpack(value, "word_dropout")
    is_array = isinstance(hashes, np.ndarray) and hashes.dtype == "uint64" and hashes.ndim == 1
    if not is_array or not (hashes[1:] > hashes[:-1]).all():
        error = "they are no sorted hashes of words"
        raise ValueError(Errors.EL116.format(source="word_dropout", error=error))
    return SeenWords(hashes)


@dataclass(frozen=True)
class DropSettings:
    """A dataclass, so that Thinc does not store it with the weights: the config is its only
    source.

    share (float): probability that a token is dropped in training, in [0, 1).
    """

    share: float


def drop_words(embed: Tok2VecModel, share: float) -> Tok2VecModel:
    """Set the word features of whole tokens to zero: in training by chance (word dropout,
    Iyyer et al. 2015), in prediction those of words never trained on. What a table of
    hashes has for these is the features of other words. Rows that stay are not scaled:
    another input makes up for the ones that go.

    embed (Tok2VecModel): the word features.
    share (float): probability that a token is dropped in training, in [0, 1).
    RETURNS (Tok2VecModel): docs -> arrays as wide as those of `embed`. The words of its
        training are saved with its weights.
    """
    return Model(
        "word_dropout",
        drop_words_forward,
        init=_init,
        layers=[embed],
        dims={"nO": embed.maybe_get_dim("nO")},
        attrs={"settings": DropSettings(share), _SEEN: SeenWords(_NOTHING)},
    )


def _init(model: Tok2VecModel, X: Any = None, Y: Any = None) -> None:
    model.attrs[_SEEN] = SeenWords(_NOTHING)
    (embed,) = model.layers
    embed.initialize(X=X, Y=Y)
    if embed.has_dim("nO"):
        model.set_dim("nO", embed.get_dim("nO"))


def drop_words_forward(
    model: Tok2VecModel, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    """docs (List[Doc]): any docs, empty ones too.
    RETURNS (Tuple[List[Floats2d], Callable]): arrays of shape (n_tokens, width), and the
        backprop to `embed`.
    """
    settings: DropSettings = model.attrs["settings"]
    Xs, backprop_embed = model.layers[0](docs, is_train)
    words = [cast(NDArray, doc.to_array(ORTH)) for doc in docs]
    if is_train:
        _remember(model, words)
        random: Any = model.ops.xp.random
        masks = [random.random((len(X), 1)) >= settings.share for X in Xs]
    else:
        known = [_find(model.attrs[_SEEN].hashes, each)[1] for each in words]
        masks = [model.ops.xp.asarray(each.reshape(-1, 1)) for each in known]

    def backprop(dYs: List[Floats2d]) -> Any:
        return backprop_embed(_apply(dYs, masks))

    return _apply(Xs, masks), backprop


def _apply(Xs: List[Floats2d], masks: List[Any]) -> List[Floats2d]:
    return [X * mask for X, mask in zip(Xs, masks)]


def _remember(model: Tok2VecModel, words: List[NDArray]) -> None:
    seen: NDArray = model.attrs[_SEEN].hashes
    batch = np.unique(np.concatenate([_NOTHING, *words]))
    places, known = _find(seen, batch)
    if not known.all():
        model.attrs[_SEEN] = SeenWords(np.insert(seen, places[~known], batch[~known]))


def _find(seen: NDArray, words: NDArray) -> Tuple[NDArray, NDArray]:
    """Where words are in a sorted array, or belong; and whether they are there."""
    places = np.searchsorted(seen, words)
    # Behind the end is nothing to compare with.
    known = places < len(seen)
    known[known] = seen[places[known]] == words[known]
    return places, known


def pipeline_vectors(width: int) -> Tok2VecModel:
    """Make the layer: spaCy's `StaticVectors`, whose rows are those of docs. See
    `build_static_vectors_v1`."""
    require_least("width", width, 1)
    return Model(
        "pipeline_vectors",
        pipeline_vectors_forward,
        init=_init_vectors,
        layers=[StaticVectors(nO=width), ragged2list()],
        dims={"nO": width},
    )


def _init_vectors(model: Tok2VecModel, X: Optional[List[Doc]] = None, Y: Any = None) -> None:
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


Tok2VecModel = Model[List[Doc], List[Floats2d]]
# Attribute of a listener with its mix: where it stands.
PLACE = "place"
# Of a model without an encoder, what goes past the encoder of the task, behind it.
PAST = "past"


def elmo_tok2vec(
    *,
    embed: Optional[Tok2VecModel],
    encode: Optional[Model[List[Floats2d], List[Floats2d]]],
    input: Optional[Tok2VecModel],
    output: Optional[Tok2VecModel],
    word_dropout: float = 0.0,
    vectors: Optional[Tok2VecModel] = None,
) -> Tok2VecModel:
    """Join word features, static vectors, ELMo and an encoder. See `build_elmo_tok2vec_v2`."""
    for place, listener in (("input", input), ("output", output)):
        if listener is not None:
            listener.attrs[PLACE] = place
    if not 0 <= word_dropout < 1 or (word_dropout and embed is None):
        raise ValueError(Errors.EL019.format(value=word_dropout))
    if embed is not None and word_dropout:
        embed = drop_words(embed, word_dropout)
    # Word dropout is not for static vectors: they know words that were never trained on.
    sources = [source for source in (embed, vectors, input) if source is not None]
    if not sources:
        raise ValueError(Errors.EL005)
    if encode is not None:
        # spaCy's own word features are as wide as its encoder.
        encoded = _encode(_join(*sources), encode, maps=sources != [embed])
    else:
        hidden = [_hide_target(source) for source in (embed, vectors) if source is not None]
        encoded = _join(*hidden, *([] if input is None else [input]))
    if output is not None:
        encoded = _join(encoded, output)
        if encode is None:
            encoded.set_ref(PAST, output)
    # What was given stays as it is.
    given = (embed, vectors, input)
    return encoded if any(encoded is each for each in given) else in_parts(encoded)


def get_past_width(tok2vec: Tok2VecModel) -> int:
    """tok2vec (Tok2VecModel): any, initialized. RETURNS (int): How many of its numbers, the last
    ones, go past the encoder that a task has of its own: those of `output` without `encode`."""
    past = tok2vec.maybe_get_ref(PAST) if isinstance(tok2vec, Model) else None
    return 0 if past is None else past.get_dim("nO")


def _join(*sources: Tok2VecModel) -> Tok2VecModel:
    if len(sources) == 1:
        return sources[0]
    joined: Tok2VecModel = concatenate(*sources)
    # spaCy's embedding layers learn theirs when they are initialized.
    if all(source.has_dim("nO") for source in sources):
        joined.set_dim("nO", sum(source.get_dim("nO") for source in sources), force=True)
    return joined


def _hide_target(embed: Tok2VecModel) -> Tok2VecModel:
    """spaCy's embedding layers take the task's target for their own if they get to see it when
    they are initialized: an encoder behind them keeps it from them."""
    dims = {"nO": embed.maybe_get_dim("nO")}
    return Model("word_features", _forward_inner, init=_init_inner, layers=[embed], dims=dims)


def _forward_inner(
    model: Tok2VecModel, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    return model.layers[0](docs, is_train)


def _init_inner(model: Tok2VecModel, X: Any = None, Y: Any = None) -> None:
    (embed,) = model.layers
    embed.initialize(X=X)
    if embed.has_dim("nO"):
        model.set_dim("nO", embed.get_dim("nO"))


def _encode(
    read: Tok2VecModel, encode: Model[List[Floats2d], List[Floats2d]], *, maps: bool
) -> Tok2VecModel:
    width = encode.get_dim("nO")
    # spaCy's encoders read as many numbers as they write.
    between: List[Model] = (
        [with_array(chain(Linear(nO=width), LayerNorm(nI=width)))] if maps else []
    )
    encoded: Tok2VecModel = chain(read, *between, encode)
    encoded.set_dim("nO", width, force=True)
    return encoded
