"""Tokens of a text with their surprisal, and what could stand in their place."""

import math
from typing import Any, Dict, List, Optional

from spacy.tokens import Doc, Token

from ..pipeline.elmo_lm import get_entry
from .text_reader import get_token

# Words that are shown in the place of a token.
_N_WORDS = 10


def describe_lines(docs: List[Doc], *, has_scores: bool) -> List[Dict[str, Any]]:
    """Describe the tokens of a text.

    docs (List[Doc]): one for each line.
    has_scores (bool): whether a component elmo_lm has read them.
    RETURNS (List[Dict[str, Any]]): of each line its "perplexity" (or None) and its "tokens":
        "text", "space" behind it, "bits" given what is before it (None for whitespace, or without
        scores), "is_known" to the language model, and "is_space".
    """
    return [
        {
            "perplexity": doc._.elmo_perplexity if has_scores else None,
            "tokens": [_describe_token(token, has_scores) for token in doc],
        }
        for doc in docs
    ]


def _describe_token(token: Token, has_scores: bool) -> Dict[str, Any]:
    return {
        "text": token.text,
        "space": token.whitespace_,
        "is_space": token.is_space,
        "is_known": bool(get_entry(token)["is_known"][token.i]) if has_scores else True,
        "bits": _get_bits(token) if has_scores else None,
    }


def _get_bits(token: Token) -> Optional[float]:
    bits = token._.elmo_surprisal
    return None if math.isnan(bits) else bits


def list_substitutes(docs: List[Doc], i: int) -> List[Dict[str, Any]]:
    """docs (List[Doc]): of a text. i (int): a token's number. RETURNS (List[Dict[str, Any]]): a
    "word" and its "probability" each, the likeliest first. RAISES (ValueError): EL276 for no
    such token, others as `token._.elmo_substitutes`."""
    words = get_token(docs, i)._.elmo_substitutes(_N_WORDS)
    return [{"word": word, "probability": probability} for word, probability in words]
