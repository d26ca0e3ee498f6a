"""`drop_words`: word features for words that were trained on alone."""

from dataclasses import dataclass
from typing import Any, Callable, List, Tuple, cast

import numpy as np
import srsly
from numpy.typing import NDArray
from spacy.attrs import ORTH
from spacy.tokens import Doc
from thinc.api import Model, deserialize_attr, serialize_attr
from thinc.types import Floats2d

from ..errors import Errors
from ..files import unpack

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
