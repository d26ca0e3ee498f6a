"""Word features behind ELMo: word dropout, and features of words that are kept in prediction."""

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.attrs import ORTH
from spacy.ml.featureextractor import forward as extract_forward
from spacy.tokens import Doc
from thinc.api import Model
from thinc.layers.chain import forward as chain_forward
from thinc.layers.list2ragged import forward as list2ragged_forward
from thinc.layers.ragged2list import forward as ragged2list_forward
from thinc.layers.with_array import forward as with_array_forward
from thinc.types import Floats2d
from torch import Tensor

from ..inference.word_cache import WordCache
from .torch_rows import Params

Tok2VecModel = Model[List[Doc], List[Floats2d]]
# Attribute of word dropout: hashes of the words that it was trained on, sorted.
_SEEN = "seen"
# Words whose features are kept: 8 MB of the presets' 96 numbers.
_N_KEPT = 20_000
# Larger parameters are not compared.
_MOST_COMPARED = 1000


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


# Features that are kept


class WordFeatures:
    """Features of words, kept from one prediction to the next. They depend on attributes of a token
    alone. Copies and pickles are empty."""

    def __init__(self) -> None:
        self._kept: Optional[_Kept] = None

    def read(self, embed: Tok2VecModel, docs: List[Doc]) -> Optional[Tuple[Tensor, Tensor]]:
        """RETURNS the features of distinct words, shape (n_words, width), and which of them each
        token is, shape (n_tokens,); None for other models than spacy.MultiHashEmbed without static
        vectors, with or without word dropout."""
        dropout = embed if embed._func is drop_words_forward else None
        features = embed.layers[0] if dropout else embed
        layers = _find_layers(features)
        if layers is None:
            return None
        seen = dropout.attrs[_SEEN] if dropout else None
        kept = self._kept
        if kept is None or not kept.is_current(features, seen):
            kept = self._kept = _Kept(features, seen)
        columns = [ORTH, *features.layers[0].attrs["columns"]]
        table = np.concatenate([doc.to_array(columns) for doc in docs])  # (n_tokens, n_columns)
        index: Dict[bytes, int] = {}
        keys = table.view(f"V{table[0].nbytes}").ravel().tolist()
        ids = [index.setdefault(key, len(index)) for key in keys]
        words: List[Any] = list(index)
        hits, stored, misses = kept.cache.get(words)
        rows = [] if stored is None else [stored.numpy()]
        if misses:
            new = [words[i] for i in misses]
            attributes = np.frombuffer(b"".join(new), table.dtype).reshape(len(new), -1)
            Y: Any = attributes[:, 1:].copy()
            for layer in layers:
                Y = layer.predict(Y)
            if seen is not None:
                Y *= _find(seen, attributes[:, 0])[1].reshape(-1, 1)
            kept.cache.put(new, torch.from_numpy(Y))
            rows.append(Y)
        places = np.argsort(hits + misses)
        return torch.from_numpy(np.concatenate(rows)), torch.from_numpy(places[ids])

    def __reduce__(self) -> Tuple[Any, ...]:
        return WordFeatures, ()


class _Kept:
    """Features of one state of the parameters and of the words that were trained on."""

    def __init__(self, features: Tok2VecModel, seen: Optional[NDArray]) -> None:
        self.cache = WordCache(_N_KEPT)
        self._seen = seen
        self._params = Params(features)
        self._small = [array for array in self._params.arrays if array.size <= _MOST_COMPARED]
        self._copies = [array.copy() for array in self._small]

    def is_current(self, features: Tok2VecModel, seen: Optional[NDArray]) -> bool:
        """An optimizer changes all parameters, and in place: a change shows in the biases."""
        pairs = zip(self._small, self._copies)
        is_same = seen is self._seen and self._params.are_of(features)
        return is_same and all(np.array_equal(a, b) for a, b in pairs)


def _find_layers(features: Tok2VecModel) -> Optional[List[Model]]:
    """Layers from attributes of tokens to features, of a model that has no others."""
    if features._func is not chain_forward or features.layers[0]._func is not extract_forward:
        return None
    layers = []
    for layer in features.layers[1:]:
        if layer._func is with_array_forward:
            layers += layer.layers
        elif layer._func not in (list2ragged_forward, ragged2list_forward):
            return None
    return layers
