"""How weights have learned to read text, by the meta.json beside them."""

from pathlib import Path
from textwrap import shorten
from typing import Any, Callable, Dict, Optional, Tuple

from ..checkpoints.checkpoint_files import BUNDLED_NAME, CheckpointFiles
from ..checkpoints.native import META_FILE, read_meta
from ..errors import Errors
from ..text.corpus import TOKENIZER, is_tokenizer_block
from ..text.cutting import CUTS


def read_settings(checkpoint: Path) -> Dict[str, Any]:
    """checkpoint (Path): a folder. RETURNS (Dict[str, Any]): how the run read and measured text
    that made it, by its meta.json, which may be a stranger's; else what is usual. RAISES
    (ValueError): EL169 for impossible values."""
    meta = read_meta(checkpoint)
    block = meta.get("evaluation") or {}
    values = {**meta, **block} if isinstance(block, dict) else {"evaluation": block}
    checks: Dict[str, Tuple[Any, Callable[[Any], bool], str]] = {
        "evaluation": ({}, lambda value: isinstance(value, dict), "an object"),
        "cut": ("sentences", lambda value: value in CUTS, f"one of {CUTS}"),
        "max_tokens": (128, lambda value: type(value) is int and value >= 2, "at least 2"),
        "limit": (0, lambda value: type(value) is int and value >= 0, "at least 0"),
        "stream": (False, lambda value: type(value) is bool, "true or false"),
        "lang": ("en", lambda value: isinstance(value, str), "a language's code"),
        "tokenizer": (TOKENIZER, is_tokenizer_block, "the name of a tokenizer and plain settings"),
    }
    settings = {}
    for key, (default, is_possible, expected) in checks.items():
        value = values.get(key)
        if value is not None and not is_possible(value):
            shown = shorten(repr(value), 100)
            raise ValueError(
                Errors.EL169.format(
                    path=checkpoint / META_FILE, key=key, value=shown, expected=expected
                )
            )
        # {} is the tokenizer of the language.
        settings[key] = default if value is None else value
    return settings


def find_tokenizer(weights: str, lang: str = "") -> Tuple[str, Dict[str, Any]]:
    """Find what cuts text into the words that a biLM has learned.

    weights (str): its folder or name; "" for the bundled one.
    lang (str): a language that was asked for; "" for that of the weights.
    RETURNS (Tuple[str, Dict[str, Any]]): language code and block of the tokenizer, for
        `make_tokenizer`.
    RAISES (ValueError): as `read_settings`.
    """
    settings = read_settings(CheckpointFiles.of(weights or BUNDLED_NAME).path)
    return lang or settings["lang"], settings["tokenizer"]


def find_said_tokenizer(weights: str, lang: str = "") -> Tuple[str, Optional[Dict[str, Any]]]:
    """As `find_tokenizer`, for a config: what the weights do not say is left to that.

    weights (str), lang (str): as for `find_tokenizer`.
    RETURNS (Tuple[str, Optional[Dict[str, Any]]]): language code, and block of the tokenizer: None
        if they do not say it, {} for that of the language.
    RAISES (ValueError): as `read_settings`.
    """
    lang, tokenizer = find_tokenizer(weights, lang)
    is_said = read_meta(CheckpointFiles.of(weights).path).get("tokenizer") is not None
    return lang, tokenizer if is_said else None
