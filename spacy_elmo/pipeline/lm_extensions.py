"""What a user reads of a language model: the extensions of docs and tokens.

`doc._.elmo_lm` is a dict of arrays: "forward" and "backward", the log-probability of each
token in nats, shape (n_tokens,), NaN for whitespace; "is_known", whether the token is in
the vocabulary (the others are predicted as `<UNK>`); "hidden", what each token is
predicted from, forward beside backward, shape (n_tokens, width), if it was kept; "nats"
and "n_predictions", sums over the doc with the ends of its sequences; "key", which tokens
they belong to; "model", which weights it was, and "component", under which name.
"""

import math
from collections import defaultdict
from typing import Any, DefaultDict, Dict, List, Optional, Protocol, Tuple, Union
from weakref import WeakSet

from spacy.tokens import Doc, Token

from ..errors import Errors
from ..layers.doc_arrays import get_arrays, register_arrays, set_arrays
from ..layers.extensions import add_extension
from ..layers.token_keys import require_key

ASSIGNS_LM = [
    "doc._.elmo_lm", "doc._.elmo_perplexity", "token._.elmo_logprob", "token._.elmo_surprisal",
]  # fmt: skip


_NAME = "elmo_lm"


class Substituter(Protocol):
    """Something that knows what else could stand in a token's place."""

    def substitutes(self, token: Token, n: int) -> List[Tuple[str, float]]:
        """See `get_substitutes`."""


# Docs travel without the model; while one lives that says the same, it is found by its key.
_models: "DefaultDict[str, WeakSet[Substituter]]" = defaultdict(WeakSet)


def register_lm_extensions() -> None:
    """Register the extensions. Harmless when done before."""
    register_arrays(_NAME)
    add_extension(Doc, "elmo_perplexity", getter=get_perplexity)
    add_extension(Token, "elmo_logprob", getter=get_logprob)
    add_extension(Token, "elmo_surprisal", getter=get_surprisal)
    add_extension(Token, "elmo_substitutes", method=get_substitutes)


def register_model(key: str, model: Substituter) -> None:
    """Have a model found by what a doc says of it. It is not kept alive by this.

    key (str): "model" of the docs that it annotates.
    model (Substituter): the component.
    """
    # Added first: another thread may look for it meanwhile.
    _models[key].add(model)
    # It may have had other weights.
    for other, models in [*_models.items()]:
        if other != key:
            models.discard(model)


def store_scores(doc: Doc, entry: Dict[str, Any]) -> None:
    """doc (Doc): any doc. entry (Dict[str, Any]): `doc._.elmo_lm`, as the module describes it."""
    set_arrays(_NAME, doc, entry)


def get_entry(item: Union[Doc, Token]) -> Dict[str, Any]:
    """item (Union[Doc, Token]): a doc, or the token that is asked for. RETURNS (Dict[str, Any]):
    `doc._.elmo_lm`. RAISES (ValueError): EL054 if there is none, EL050 if the tokens were
    changed since."""
    doc = item.doc if isinstance(item, Token) else item
    entry = get_arrays(_NAME, doc)
    if entry is None:
        raise ValueError(Errors.EL054.format(text=doc.text[:50]))
    if "key" in entry:
        require_key(item, entry["key"], entry.get("component", _NAME))
    elif len(entry["forward"]) != len(doc):
        # Version 0.1.0 kept no key.
        raise ValueError(Errors.EL050.format(text=doc.text[:50], name=_NAME))
    return entry


def get_perplexity(doc: Doc) -> Optional[float]:
    """doc._.elmo_perplexity: geometric mean of both directions, for each token and the
    end of each sequence; None for a doc without words. Errors as `get_entry`."""
    entry = get_entry(doc)
    n = entry["n_predictions"]
    return math.exp(min(entry["nats"] / n, 700.0)) if n else None


def get_logprob(token: Token) -> Tuple[float, float]:
    """token._.elmo_logprob: given what is before it, and given what is after it, in nats;
    NaN for whitespace. Errors as `get_entry`."""
    entry = get_entry(token)
    return float(entry["forward"][token.i]), float(entry["backward"][token.i])


def get_surprisal(token: Token) -> float:
    """token._.elmo_surprisal: bits, given what is before the token, as a reader meets it;
    NaN for whitespace. Errors as `get_entry`."""
    return -get_logprob(token)[0] / math.log(2.0)


def get_substitutes(token: Token, n: int = 10) -> List[Tuple[str, float]]:
    """token._.elmo_substitutes(n): words that could stand here, the likeliest first, each
    with its probability: the product of both directions', normalised over the vocabulary.

    RAISES (ValueError): EL054 and EL050 as `get_entry`, EL055 if what predicts is gone or
        was not kept, EL056 for whitespace, EL012 for a negative `n`.
    """
    entry = get_entry(token)
    model = next(iter([*_models.get(entry["model"], ())]), None)
    if model is None or "hidden" not in entry:
        raise ValueError(Errors.EL055.format(text=token.doc.text[:50]))
    if math.isnan(entry["forward"][token.i]):
        raise ValueError(Errors.EL056.format(text=token.doc.text[:50]))
    return model.substitutes(token, n)
