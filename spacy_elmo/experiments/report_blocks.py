"""What a report is made of, and how that is written: Markdown with pictures beside it,
or one HTML page that needs no other file."""

from base64 import b64encode
from html import escape
from pathlib import Path
from typing import List, NamedTuple, Sequence, Union


class Text(NamedTuple):
    """text (str): a paragraph."""

    text: str


class Heading(NamedTuple):
    """text (str): what comes below it is about."""

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
    """title (str): its heading. blocks (List[Block]): what it says."""

    title: str
    blocks: List[Block]


def to_markdown(title: str, sections: Sequence[Section], folder: Path) -> str:
    """Write Markdown.

    title (str): of the report.
    sections (Sequence[Section]): what it says.
    folder (Path): where the text will lie; pictures are named as seen from there.
    RETURNS (str): the text.
    """
    parts = [f"# {_escape(title)}\n"]
    for section in sections:
        parts.append(f"## {section.title}\n")
        parts += [f"{_block_to_markdown(block, folder)}\n" for block in section.blocks]
    return "\n".join(parts)


def _block_to_markdown(block: Block, folder: Path) -> str:
    if isinstance(block, Text):
        return _escape(block.text)
    if isinstance(block, Heading):
        return f"### {_escape(block.text)}"
    if isinstance(block, Picture):
        return f"![{_escape(block.caption)}]({block.path.relative_to(folder).as_posix()})"
    rows = [block.header, ["---"] * len(block.header), *block.rows]
    return "\n".join(f"| {' | '.join(_escape(cell) for cell in row)} |" for row in rows)


def _escape(text: str) -> str:
    """Words of a corpus, and titles, are no markup: neither tags, links nor cells."""
    line = " ".join(text.split())
    for old, new in (("&", "&amp;"), ("<", "&lt;"), ("](", "]\\("), ("|", "\\|")):
        line = line.replace(old, new)
    return line


def to_html(title: str, sections: Sequence[Section]) -> str:
    """title (str): of the report. sections (Sequence[Section]): what it says. RETURNS (str):
    a page with the pictures inside."""
    parts = [_HEAD.replace("TITLE", escape(title)), f"<h1>{escape(title)}</h1>"]
    for section in sections:
        parts.append(f"<h2>{escape(section.title)}</h2>")
        parts += [_block_to_html(block) for block in section.blocks]
    return "\n".join([*parts, "</body></html>"])


def _block_to_html(block: Block) -> str:
    if isinstance(block, Text):
        return f"<p>{escape(block.text)}</p>"
    if isinstance(block, Heading):
        return f"<h3>{escape(block.text)}</h3>"
    if isinstance(block, Picture):
        data = b64encode(block.path.read_bytes()).decode("ascii")
        caption = escape(block.caption)
        image = f"<img alt='{caption}' src='data:image/png;base64,{data}'>"
        return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"
    header = "".join(f"<th>{escape(cell)}</th>" for cell in block.header)
    rows = [f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in row)}</tr>" for row in block.rows]
    return f"<table><tr>{header}</tr>{''.join(rows)}</table>"


_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>TITLE</title><style>
body { font-family: -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; margin: 2rem auto;
  line-height: 1.5; max-width: 56rem; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { padding: 0.25rem 0.8rem; border-bottom: 1px solid #ddd; text-align: left }
figure { margin: 1.5rem 0 } img { max-width: 100% } figcaption { color: #666; font-size: 0.9rem }
h2 { margin-top: 3rem; border-top: 2px solid #eee; padding-top: 1rem }
</style></head><body>"""
