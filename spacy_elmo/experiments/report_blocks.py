"""What a report consists of, whatever it is written as."""

from pathlib import Path
from typing import Iterator, List, NamedTuple, Sequence, Union


class Text(NamedTuple):
    """text (str): a paragraph."""

    text: str


class Heading(NamedTuple):
    """text (str): the title of the blocks that follow."""

    text: str


class Table(NamedTuple):
    """header (Sequence[str]), rows (Sequence[Sequence[str]]): the cells."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


class Picture(NamedTuple):
    """path (Path): a PNG file. caption (str): what it shows."""

    path: Path
    caption: str


Block = Union[Heading, Text, Table, Picture]


class Section(NamedTuple):
    """title (str): its heading. blocks (List[Block]): its content, in this order."""

    title: str
    blocks: List[Block]


def require_texts(blocks: Sequence[Block]) -> None:
    """Check that blocks hold texts, before anything is written: a result that was edited by
    hand may have numbers or objects in their place.

    blocks (Sequence[Block]): to be written.
    RAISES (TypeError): for the first that is no string.
    """
    for block in blocks:
        for text in _list_texts(block):
            if not isinstance(text, str):
                raise TypeError(f"{text!r:.50} is no text")


def _list_texts(block: Block) -> Iterator[str]:
    if isinstance(block, Table):
        for row in (block.header, *block.rows):
            yield from row
    else:
        yield block.caption if isinstance(block, Picture) else block.text
