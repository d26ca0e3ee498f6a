"""Text for people: a word in its context, a number of things, a duration."""

import re
from textwrap import fill
from typing import Callable, Optional, Sequence


def _bracket(word: str) -> str:
    return f"[{word}]"


def mark_word(
    words: Sequence[str],
    position: int,
    mark: Callable[[str], str] = _bracket,
    *,
    n_around: Optional[int] = None,
    ellipsis: str = "…",
) -> str:
    """Write a sentence with one word marked.

    words (Sequence[str]): of the sentence.
    position (int): of the word.
    mark (Callable[[str], str]): how it is marked; by default in square brackets.
    n_around (Optional[int]): words to show on each side; None for all.
    ellipsis (str): in place of the words that are not shown; "" for nothing.
    RETURNS (str): one line.
    """
    start = 0 if n_around is None else max(0, position - n_around)
    end = len(words) if n_around is None else position + n_around + 1
    shown = [mark(word) if i == position else word for i, word in enumerate(words)][start:end]
    prefix = [ellipsis] if ellipsis and start else []
    suffix = [ellipsis] if ellipsis and end < len(words) else []
    return " ".join([*prefix, *shown, *suffix])


def close_up(text: str) -> str:
    """text (str): tokens with a space between any two. RETURNS (str): the same without the space
    before a mark that ends a sentence or a part of it."""
    return re.sub(r" ([.,;:!?])(?= |$)", r"\1", text)


def wrap_evenly(text: str, most: int) -> str:
    """text (str): a sentence. most (int): letters in a line. RETURNS (str): the same in as few
    lines as `textwrap.fill` makes of it, but of about the same length."""
    wrapped = fill(text, most)
    n_breaks = wrapped.count("\n")
    for width in range(max(1, len(text) // (n_breaks + 1)), most):
        narrower = fill(text, width)
        if narrower.count("\n") == n_breaks:
            return narrower
    return wrapped


def count_things(n: int, singular: str, plural: str = "") -> str:
    """n (int): how many. singular (str): what one is called. plural (str): what several are
    called, if not that with an s. RETURNS (str): such as "1 file" and "2,000 files"."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def format_seconds(seconds: float) -> str:
    """seconds (float): a duration. RETURNS (str): such as "3.2 s", "2 min 5 s", "1 h 2 min"."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"
