"""Parts of `ElmoTok2Vec` around ELMo: word features that are dropped by chance, static vectors, an
encoder."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, List, Optional, Tuple, cast

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import ORTH
from spacy.ml.staticvectors import StaticVectors
from spacy.tokens import Doc
from spacy.vectors import Mode, Vectors
from thinc.api import LayerNorm, Linear, Model, chain, concatenate, ragged2list, with_array
from thinc.types import Floats2d, Ints1d

from ..errors import Errors
from ..utils import require_least, split_by_size
from .elmo_layers import LAYERS_NAME
from .scalar_mix import PART_TOKENS, exceeds_part

Tok2VecModel = Model[List[Doc], List[Floats2d]]
Forward = Callable[[Any, List[Doc], bool], Tuple[List[Floats2d], Callable]]
# Attribute of a listener with its mix: "input" or "output".
PLACE = "place"
# In a model without an encoder, the layer whose vectors skip the encoder of the task.
SKIP = "past"
# Attribute of word dropout: hashes of the words that it was trained on, sorted.
_SEEN = "seen"


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
    return encoded


def hide_target(embed: Tok2VecModel) -> Tok2VecModel:
    """Initialize spaCy's embedding layers without the task's target, which they would take for
    their own."""
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


def in_parts(model: Tok2VecModel) -> Tok2VecModel:
    """Have a model, changed in place, predict some docs at a time. Training is unchanged."""
    model._func = partial(in_parts_forward, read=model._func)
    return model


def in_parts_forward(
    model: Tok2VecModel, docs: List[Doc], is_train: bool, *, read: Forward
) -> Tuple[List[Floats2d], Callable]:
    """Call `read`, the model's own forward, with all docs in training, else with some at a time."""
    if is_train or not exceeds_part(model, docs):
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


# Word dropout


@dataclass(frozen=True)
class DropSettings:
    """A dataclass, so that Thinc does not store it with the weights.

    share (float): probability in [0, 1) that a token is dropped in training.
    """

    share: float


def drop_words(embed: Tok2VecModel, share: float) -> Tok2VecModel:
    """Set the word features of whole tokens to zero: in training by chance (word dropout,
    Iyyer et al. 2015), in prediction those of words never trained on, for which a table of hashes
    has the features of other words. Rows that stay are not scaled: another input makes up for the
    ones that go.

    embed (Tok2VecModel): the word features.
    share (float): probability that a token is dropped in training, in [0, 1).
    RETURNS (Tok2VecModel): as wide as `embed`. The words of its training are saved with it.
    """
    return Model(
        "word_dropout",
        drop_words_forward,
        init=_init_drop_words,
        layers=[embed],
        dims={"nO": embed.maybe_get_dim("nO")},
        attrs={"settings": DropSettings(share), _SEEN: np.zeros(0, dtype="uint64")},
    )


def _init_drop_words(model: Tok2VecModel, X: Any = None, Y: Any = None) -> None:
    model.attrs[_SEEN] = np.zeros(0, dtype="uint64")
    _init_inner(model, X, Y)


def drop_words_forward(
    model: Tok2VecModel, docs: List[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    settings: DropSettings = model.attrs["settings"]
    Xs, backprop_embed = model.layers[0](docs, is_train)
    words = [cast(NDArray, doc.to_array(ORTH)) for doc in docs]
    seen: NDArray = model.attrs[_SEEN]
    if is_train:
        if words:
            batch = np.unique(np.concatenate(words))
            places, is_known = _find(seen, batch)
            if not is_known.all():
                model.attrs[_SEEN] = np.insert(seen, places[~is_known], batch[~is_known])
        random: Any = model.ops.xp.random
        masks = [random.random((len(X), 1)) >= settings.share for X in Xs]
    else:
        masks = [model.ops.xp.asarray(_find(seen, each)[1].reshape(-1, 1)) for each in words]

    def backprop(dYs: List[Floats2d]) -> Any:
        return backprop_embed([dY * mask for dY, mask in zip(dYs, masks)])

    return [X * mask for X, mask in zip(Xs, masks)], backprop


def _find(seen: NDArray, words: NDArray) -> Tuple[NDArray, NDArray]:
    """Where words belong in a sorted array, and whether they are there."""
    places = np.searchsorted(seen, words)
    known = places < len(seen)
    known[known] = seen[places[known]] == words[known]
    return places, known


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
