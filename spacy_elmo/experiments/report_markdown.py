"""A report as Markdown, with its pictures in files."""

from pathlib import Path
from typing import Sequence

from wasabi import MarkdownRenderer

from .report_blocks import Block, Heading, Picture, Section, Text

# A pair of brackets before a pair of parentheses is a link, a bar ends a table's cell.
_ESCAPES = (("&", "&amp;"), ("<", "&lt;"), ("](", "]\\("), ("|", "\\|"))


def to_markdown(title: str, sections: Sequence[Section], folder: Path) -> str:
    """Write a report as Markdown.

    title (str): of the report.
    sections (Sequence[Section]): its content.
    folder (Path): where the text will lie; pictures are named relative to it.
    RETURNS (str): the text.
    """
    markdown = MarkdownRenderer()
    markdown.add(markdown.title(1, _escape(title)))
    for section in sections:
        markdown.add(markdown.title(2, _escape(section.title)))
        for block in section.blocks:
            markdown.add(_render(markdown, block, folder))
    return f"{markdown.text}\n"


def _render(markdown: MarkdownRenderer, block: Block, folder: Path) -> str:
    if isinstance(block, Text):
        return _escape(block.text)
    if isinstance(block, Heading):
        return markdown.title(3, _escape(block.text))
    if isinstance(block, Picture):
        url = block.path.relative_to(folder).as_posix()
        return f"!{markdown.link(_escape(block.caption), url)}"
    rows = [[_escape(cell) for cell in row] for row in block.rows]
    return markdown.table(rows, [_escape(cell) for cell in block.header])


def _escape(text: str) -> str:
    """Words of a corpus, and titles, are no markup: neither tags, links nor cells."""
    line = " ".join(text.split())
    for old, new in _ESCAPES:
        line = line.replace(old, new)
    return line
