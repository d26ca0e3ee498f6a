"""Formats of text: each reads a file's texts from a position on.

A reader is a callable `(path, offset) -> Iterator[(text, offset)]`: it yields texts, each
with the position after it; from that position another call goes on. 0 is the start.
"""

import json
from pathlib import Path
from typing import Any, Callable, Iterator, Tuple

import spacy
from spacy.tokens import DocBin

from ..errors import Errors
from .files import DAMAGED, open_binary

# Bytes of plain text after which a line is cut: some corpora are one line.
_MAX_LINE = 1 << 16

Reader = Callable[[Path, int], Iterator[Tuple[str, int]]]


def read_text(path: Path, offset: int) -> Iterator[Tuple[str, int]]:
    """Read plain text: each line is a text. An empty line stands for a break. A line above
    64 kB is several texts, cut behind a space.

    path (Path): the file, in UTF-8; bytes that are none are replaced.
    offset (int): byte, decompressed, to start from.
    YIELDS (Tuple[str, int]): the line without its end, and the byte after it.
    RAISES (ValueError): EL083 if the file is damaged.
    """
    for line, end in _lines(path, offset, _MAX_LINE):
        yield line.decode("utf-8", "replace").strip("\r\n\ufeff"), end


def read_jsonl(path: Path, offset: int) -> Iterator[Tuple[str, int]]:
    """Read JSON objects, one in each line, with the text in "text".

    path (Path): the file.
    offset (int): byte, decompressed, to start from.
    YIELDS (Tuple[str, int]): the text, and the byte after it.
    RAISES (ValueError): EL084 for a line without a text, EL083 if the file is damaged.
    """
    for line, end in _lines(path, offset):
        if not line.strip():
            continue
        try:
            text: Any = json.loads(line)["text"]
        except (ValueError, KeyError, TypeError) as err:
            raise ValueError(Errors.EL084.format(path=path, byte=end - len(line))) from err
        if not isinstance(text, str):
            raise ValueError(Errors.EL084.format(path=path, byte=end - len(line)))
        # JSON can name half of a pair, which is no character.
        yield text.encode("utf-8", "replace").decode("utf-8"), end


def read_docbin(path: Path, offset: int) -> Iterator[Tuple[str, int]]:
    """Read the texts of docs. A DocBin has to be loaded whole.

    path (Path): a .spacy file.
    offset (int): doc to start from.
    YIELDS (Tuple[str, int]): the doc's text, and the number of the next one.
    RAISES (ValueError): EL083 if the file cannot be read.
    """
    try:
        with open_binary(path) as file:
            docs = DocBin().from_bytes(file.read())
    except (*DAMAGED, ValueError, TypeError, KeyError) as err:
        raise ValueError(Errors.EL083.format(path=path, error=err)) from err
    for i, doc in enumerate(docs.get_docs(spacy.blank("xx").vocab)):
        if i >= offset:
            yield doc.text, i + 1


def _lines(path: Path, offset: int, max_line: int = -1) -> Iterator[Tuple[bytes, int]]:
    # What is yielded depends on where it begins alone: a run goes on with the same parts.
    rest = b""
    try:
        with open_binary(path) as file:
            file.seek(offset)
            while line := rest + file.readline(max_line - len(rest)):
                end = len(line)
                if 0 < max_line <= end and not line.endswith(b"\n"):
                    end = line.rfind(b" ") + 1 or _end_of_characters(line)
                line, rest = line[:end], line[end:]
                offset += end
                yield line, offset
    except DAMAGED as err:
        raise ValueError(Errors.EL083.format(path=path, error=err)) from err


def _end_of_characters(line: bytes) -> int:
    """Where the last character of UTF-8 begins: what is before it is whole."""
    begin = len(line) - 1
    while begin > len(line) - 4 and line[begin] & 0xC0 == 0x80:
        begin -= 1
    return begin or len(line)
