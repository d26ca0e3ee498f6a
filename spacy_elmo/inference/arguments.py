"""Checks of what users hand to an `Embedder`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from ..bilm.config import BiLMConfig
from ..bilm.lstm import BiLMState
from ..bilm.state_checks import find_infinite, is_finite
from ..errors import Errors

# What has an order and a length.
_LISTS = (Sequence, np.ndarray)


def require_words(sentences: Any, first: int = 0) -> None:
    """sentences (Any): should be lists of words. first (int): number of the first one. RAISES
    (ValueError): EL013 if one of them is a string, EL119 for whatever else is no list or no
    word."""
    if not _is_list(sentences):
        raise _make_error("What is to be embedded", sentences, "a list")
    for i, words in enumerate(sentences, first):
        if isinstance(words, str):
            raise ValueError(Errors.EL013.format(i=i, found=words[:50]))
        if not _is_list(words):
            raise _make_error(f"Sentence {i}", words, "a list")
        for j, word in enumerate(words):
            if not isinstance(word, str):
                raise _make_error(f"Word {j} of sentence {i}", word, "a string")


def require_state(state: Any) -> None:
    """state (Any): should be a state, or None. RAISES (ValueError): EL120 if it is not, EL306 if
    it holds NaN or infinity."""
    is_state = isinstance(state, BiLMState) and all(
        isinstance(part, Tensor) and part.dim() == 4 and part.is_floating_point() for part in state
    )
    if state is not None and not is_state:
        raise ValueError(Errors.EL120.format(found=f"{type(state).__name__} ({state!r:.50})"))
    for name, part in zip(BiLMState._fields, state or ()):
        if not is_finite(part):
            places = find_infinite(part)
            text = Errors.EL306.format(name=name, count=len(places), place=places[0].tolist())
            raise ValueError(text)


def require_shapes(state: BiLMState, zeros: BiLMState, config: BiLMConfig) -> None:
    """state (BiLMState): any. zeros (BiLMState): of the biLM, which may have other rows. config
    (BiLMConfig): its shape. RAISES (ValueError): EL014 if the state is of another shape."""
    if any(a.shape[i] != b.shape[i] for a, b in zip(state, zeros) for i in (0, 1, 3)):
        shapes = [tuple(part.shape) for part in state]
        raise ValueError(Errors.EL014.format(found=shapes, config=config))


def _is_list(value: Any) -> bool:
    return isinstance(value, _LISTS) and not (isinstance(value, np.ndarray) and value.ndim == 0)


def _make_error(place: str, value: Any, expected: str) -> ValueError:
    description = f"{type(value).__name__} ({value!r:.50})"
    return ValueError(Errors.EL119.format(place=place, found=description, expected=expected))
