"""Formats of text: each reads a file's texts from a position on.

A reader is a callable `(path, offset) -> Iterator[(text, offset)]`: it yields texts, each
with the position after it; another call reads on from that position. 0 is the start.
"""

import json
from pathlib import Path
from typing import Any, Callable, Iterator, Tuple

from spacy.attrs import ORTH
from spacy.strings import StringStore
from spacy.tokens import DocBin

from ..errors import Errors
from ..utils import show_reason
from .docbins import load_docbin
from .encoding import BOM, decode, require_no_null
from .text_files import DAMAGED, open_binary

# Bytes of plain text after which a line is cut: some corpora are one line.
_MAX_LINE = 1 << 16
# Bytes that a line of JSON can have: one that has more is no text of a person.
_MAX_JSON = 1 << 28

Reader = Callable[[Path, int], Iterator[Tuple[str, int]]]


def read_text(path: Path, offset: int) -> Iterator[Tuple[str, int]]:
    """Read plain text: each line is a text. An empty line stands for a break. A line above
    64 kB is several texts, cut behind a space.

    path (Path): the file, in UTF-8, with a mark (BOM) or without.
    offset (int): byte, decompressed, to start from.
    YIELDS (Tuple[str, int]): the line without its end, and the byte after it.
    RAISES (ValueError): EL083 if the file is damaged, EL155 if it is not in UTF-8, EL329 if its
        lines end with carriage returns alone.
    """
    for line, end in _lines(path, offset, _MAX_LINE):
        text = decode(line, path, end - len(line)).strip(f"\r\n{BOM}")
        if end == len(line) and ends_with_returns(line):
            raise ValueError(Errors.EL329.format(path=path))
        yield text, end


def ends_with_returns(line: bytes) -> bool:
    """line (bytes): the first one of a file. RETURNS (bool): Whether it is all of it, as lines end
    with carriage returns alone."""
    return not line.endswith(b"\n") and b"\r" in line.strip(b"\r\n")


def read_jsonl(path: Path, offset: int) -> Iterator[Tuple[str, int]]:
    """Read JSON objects, one in each line, with the text in "text".

    path (Path): the file, in UTF-8, with a mark (BOM) or without.
    offset (int): byte, decompressed, to start from.
    YIELDS (Tuple[str, int]): the text, and the byte after it.
    RAISES (ValueError): EL084 for a line without a text or a very long one, EL155 and
        EL156 if it is not in UTF-8 or holds NUL, EL083 if the file is damaged.
    """
    for line, end in _lines(path, offset, _MAX_JSON, is_cut=False):
        start = end - len(line)
        content = decode(line, path, start).removeprefix(BOM)
        if not content.strip():
            continue
        problem = Errors.EL084.format(path=path, byte=start)
        if len(line) > _MAX_JSON:
            raise ValueError(problem)
        try:
            text: Any = json.loads(content)["text"]
        except (ValueError, KeyError, TypeError, RecursionError) as err:
            raise ValueError(problem) from err
        if not isinstance(text, str):
            raise ValueError(problem)
        require_no_null(text, path, f"the line at byte {start}")
        # JSON can name half of a pair, which is no character.
        yield text.encode("utf-8", "replace").decode("utf-8"), end


def read_docbin(path: Path, offset: int) -> Iterator[Tuple[str, int]]:
    """Read the texts of docs. A DocBin has to be loaded whole.

    path (Path): a .spacy file.
    offset (int): doc to start from.
    YIELDS (Tuple[str, int]): the doc's text, and the number of the next one.
    RAISES (ValueError): EL083 if the file cannot be read, EL156 if a text holds NUL.
    """
    try:
        docs = load_docbin(path)
        strings = StringStore(docs.strings)
        n_docs = len(docs)
    # Any error may come of a file of another kind.
    except Exception as err:
        raise ValueError(Errors.EL083.format(path=path, error=show_reason(err))) from err
    for i in range(offset, n_docs):
        try:
            text = _join_words(docs, i, strings)
        except Exception as err:
            raise ValueError(Errors.EL083.format(path=path, error=f"doc {i}: {err}")) from err
        require_no_null(text, path, f"doc {i}")
        yield text, i + 1


def _join_words(docs: DocBin, i: int, strings: StringStore) -> str:
    """The text of a doc. Annotations, and what users put there, are not read."""
    words = [strings[key] for key in docs.tokens[i][:, docs.attrs.index(ORTH)].tolist()]
    # spaCy writes a space behind each word where it does not know.
    known = not docs.flags[i].get("has_unknown_spaces")
    spaces = docs.spaces[i].ravel().tolist() if known else [True] * len(words)
    return "".join(word + " " * space for word, space in zip(words, spaces, strict=True))


def _lines(
    path: Path, offset: int, max_line: int, *, is_cut: bool = True
) -> Iterator[Tuple[bytes, int]]:
    """Read lines, and the byte after each. One of more bytes is cut behind a space; if it is
    not to be cut, its beginning tells that it is longer, and is the last."""
    # What is yielded depends on its start alone: a resumed run reads the same parts.
    rest = b""
    try:
        with open_binary(path) as file:
            file.seek(offset)
            while line := rest + file.readline(max_line + (not is_cut) - len(rest)):
                end = len(line)
                if is_cut and max_line <= end and not line.endswith(b"\n"):
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
