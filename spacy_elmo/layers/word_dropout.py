"""`drop_words`: tokens lose their word features in training."""

from dataclasses import dataclass
from typing import Any, Callable, List, Tuple

from thinc.api import Model
from thinc.types import Floats2d

DropModel = Model[List[Floats2d], List[Floats2d]]


@dataclass(frozen=True)
class DropSettings:
    """A dataclass, so that Thinc does not store it with the weights: the config is its only
    source.

    share (float): probability that a token is dropped, in [0, 1).
    """

    share: float


def drop_words(share: float) -> DropModel:
    """Set whole rows to zero in training (word dropout, Iyyer et al. 2015, section 3.2). The
    rows that stay are not scaled: another input makes up for the ones that go.

    share (float): probability that a row is dropped, in [0, 1).
    RETURNS (DropModel): rows -> rows of the same width.
    """
    return Model("word_dropout", drop_words_forward, attrs={"settings": DropSettings(share)})


def drop_words_forward(
    model: DropModel, Xs: List[Floats2d], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    """Xs (List[Floats2d]): one array a doc, shape (n_tokens, width); docs may be empty.
    RETURNS (Tuple[List[Floats2d], Callable]): arrays of the same shapes, and the backprop to
        Xs.
    """
    if not is_train:
        return Xs, _pass
    settings: DropSettings = model.attrs["settings"]
    random: Any = model.ops.xp.random
    masks = [random.random((len(X), 1)) >= settings.share for X in Xs]

    def backprop(dYs: List[Floats2d]) -> List[Floats2d]:
        return _apply(dYs, masks)

    return _apply(Xs, masks), backprop


def _apply(Xs: List[Floats2d], masks: List[Any]) -> List[Floats2d]:
    return [X * mask for X, mask in zip(Xs, masks)]


def _pass(dYs: List[Floats2d]) -> List[Floats2d]:
    return dYs
