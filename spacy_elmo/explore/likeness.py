"""How alike tokens are, layer by layer."""

from collections import Counter
from typing import Any, Dict, List, Sequence

from spacy.tokens import Doc
from thinc.api import get_array_module
from thinc.util import to_numpy

from ..errors import Errors
from ..experiments.contexts import name_layers
from ..utils import normalise
from .text_reader import get_token, list_tokens

# Tokens that are compared at first, if no more of them occur twice.
_N_CHOSEN = 8


def compare_tokens(docs: List[Doc], chosen: Sequence[int], most: int) -> List[Dict[str, Any]]:
    """Compute the cosines of tokens with each other in each layer.

    docs (List[Doc]): of a text, with layers (`store_layers = true`).
    chosen (Sequence[int]): numbers of the tokens.
    most (int): how many may be chosen.
    RETURNS (List[Dict[str, Any]]): of each layer its "name" and its "cosines", shape
        (n_chosen, n_chosen), the word layer first.
    RAISES (ValueError): EL277 for none or too many, EL276 for a token that is not there, EL052
        without layers.
    """
    if not 1 <= len(chosen) <= most:
        raise ValueError(Errors.EL277.format(n=len(chosen), most=most))
    layers = [get_token(docs, i)._.elmo_layers for i in chosen]
    stacked = get_array_module(layers[0]).stack(layers, axis=1)  # (n_layers, n_chosen, width)
    X = to_numpy(normalise(stacked))
    return [
        {"name": name, "cosines": (rows @ rows.T).tolist()}
        for name, rows in zip(name_layers(len(X)), X)
    ]


def choose_tokens(docs: List[Doc], most: int) -> List[int]:
    """Choose what is worth comparing: words that occur more than once, and the first others.

    docs (List[Doc]): of a text.
    most (int): how many at most.
    RETURNS (List[int]): numbers of tokens, those of words that occur more than once first.
    """
    words = {i: t.lower_ for i, t in enumerate(list_tokens(docs)) if t.is_alpha and not t.is_stop}
    counts = Counter(words.values())
    repeated = [i for i, word in words.items() if counts[word] > 1]
    others = [i for i in words if counts[words[i]] == 1]
    others = others or [i for i, t in enumerate(list_tokens(docs)) if not t.is_space]
    n_others = max(0, _N_CHOSEN - len(repeated))
    return [*repeated, *others[:n_others]][:most]
