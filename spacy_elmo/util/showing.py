"""Untrusted values and names in messages: short, on one line, printable."""

import json
from pathlib import Path
from typing import Any, Iterable

_N_CHARACTERS = 80
_N_NAMES = 8
_N_REASON = 400


def show_value(value: Any) -> str:
    """value (Any): what a file or config says. RETURNS (str): as JSON has it, cut short."""
    try:
        return _shorten(json.dumps(value))
    except (TypeError, ValueError, RecursionError):
        return f"({type(value).__name__})"


def show_name(name: str, most: int = _N_CHARACTERS) -> str:
    """name (str): any text. most (int): letters shown. RETURNS (str): the same, cut short;
    quoted and escaped if a terminal would not print it as it is."""
    return _shorten(name if name.isprintable() else json.dumps(name), most)


def show_names(names: Iterable[str]) -> str:
    """names (Iterable[str]): any. RETURNS (str): the first of them in their order, and how
    many there are besides; "none" for none."""
    ordered = sorted(names)
    shown = ", ".join(map(show_name, ordered[:_N_NAMES]))
    more = len(ordered) - _N_NAMES
    return f"{shown} and {more} more" if more > 0 else shown or "none"


def show_reason(error: BaseException) -> str:
    """error (BaseException): one of ours or a library's. RETURNS (str): its text as a part of
    another message: on one line, without the last full stop."""
    text = " ".join(str(error).split()) or type(error).__name__
    return show_name(text, _N_REASON).rstrip(".")


def show_error(error: BaseException) -> str:
    """error (BaseException): any of a stranger's code. RETURNS (str): as `show_reason`; with its
    class, unless the text begins with a code in brackets."""
    reason = show_reason(error)
    name = type(error).__name__
    return reason if reason.startswith("[") or reason == name else f"{name}: {reason}"


def _shorten(text: str, most: int = _N_CHARACTERS) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def show_path(path: Path) -> str:
    """path (Path): any: names of files need not be text. RETURNS (str): it as text in UTF-8."""
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")
