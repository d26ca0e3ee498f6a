"""A word among its neighbours, for people to read."""

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
    mark (Callable[[str], str]): how it is marked; in square brackets if not said.
    n_around (Optional[int]): words to show on each side; None for all.
    ellipsis (str): stands for what is not shown; "" for nothing.
    RETURNS (str): one line.
    """
    start = 0 if n_around is None else max(0, position - n_around)
    end = len(words) if n_around is None else position + n_around + 1
    shown = [mark(word) if i == position else word for i, word in enumerate(words)][start:end]
    before = [ellipsis] if ellipsis and start else []
    after = [ellipsis] if ellipsis and end < len(words) else []
    return " ".join([*before, *shown, *after])
