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

Reader = Callable[[Path, int], Iterator[Tuple[str, int]]]


def read_text(path: Path, offset: int) -> Iterator[Tuple[str, int]]:
    """Read plain text: each line is a text. An empty line stands for a break.

    path (Path): the file, in UTF-8; bytes that are none are replaced.
    offset (int): byte, decompressed, to start from.
    YIELDS (Tuple[str, int]): the line without its end, and the byte after it.
    RAISES (ValueError): EL083 if the file is damaged.
    """
    for line, end in _lines(path, offset):
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


def _lines(path: Path, offset: int) -> Iterator[Tuple[bytes, int]]:
    try:
        with open_binary(path) as file:
            file.seek(offset)
            for line in file:
                offset += len(line)
                yield line, offset
    except DAMAGED as err:
        raise ValueError(Errors.EL083.format(path=path, error=err)) from err
