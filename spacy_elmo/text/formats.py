"""Formats of text, and lines of published data.

A reader of a format is a callable `(path, offset) -> Iterator[(text, offset)]`: it yields texts,
each with the position after it, from which another call continues. 0 is the start.
"""

import json
import zlib
from contextlib import suppress
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any, Callable, Iterator, List, Tuple

from spacy.attrs import ORTH
from spacy.strings import StringStore
from spacy.tokens import DocBin

from ..errors import Errors
from ..files import require_file
from ..utils import show_reason
from .text_files import BOM, DAMAGED, decode, open_binary

# Bytes of plain text after which a line is cut: some corpora are one line.
_MAX_LINE = 1 << 16
# Bytes that a line of JSON, and one of published data, may have.
_MAX_JSON = 1 << 28
_MAX_DATA_LINE = 10_000_000
# Bytes of a DocBin, which is loaded whole: four million docs of twenty tokens have less.
_MAX_DOCBIN = 1 << 32
_BLOCK = 1 << 22

Reader = Callable[[Path, int], Iterator[Tuple[str, int]]]
# The number of a line, from 1, and its text without the end.
Line = Tuple[int, str]


def _read_error(path: Path, error: object) -> ValueError:
    return ValueError(Errors.EL103.format(path=path, error=error))


def read_text(path: Path, offset: int) -> Iterator[Tuple[str, int]]:
    """Read plain text: each line is a text, an empty one stands for a break. A line above 64 kB is
    several texts, cut behind a space. Positions are bytes of the decompressed file. RAISES
    (ValueError): EL103 if the file is damaged or its lines end with carriage returns alone, EL155
    if it is not in UTF-8."""
    for line, end in _read_lines(path, offset, _MAX_LINE):
        text = decode(line, path, end - len(line)).strip(f"\r\n{BOM}")
        if end == len(line):
            require_line_feeds(line, path)
        yield text, end


def require_line_feeds(line: bytes, path: Path) -> None:
    """RAISES (ValueError): EL103 if the first line of a file says that its lines end with carriage
    returns alone."""
    if not line.endswith(b"\n") and b"\r" in line.strip(b"\r\n"):
        error = "its lines end with \\r alone, as on old Macs: use `tr '\\r' '\\n' < OLD > NEW`"
        raise _read_error(path, error)


def read_jsonl(path: Path, offset: int) -> Iterator[Tuple[str, int]]:
    """Read JSON objects, one in each line, with the text in "text". Positions are bytes of the
    decompressed file. RAISES (ValueError): EL103 if the file is damaged, or for a line without a
    text, with NUL in it or above 256 MB; EL155 if it is not in UTF-8."""
    for line, end in _read_lines(path, offset, _MAX_JSON, is_cut=False):
        start = end - len(line)
        content = decode(line, path, start).removeprefix(BOM)
        if not content.strip():
            continue
        text: Any = None
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            text = json.loads(content)["text"]
        if len(line) > _MAX_JSON or not isinstance(text, str):
            problem = f'no JSON object with a "text" in the line at byte {start}'
            raise _read_error(path, problem)
        if "\0" in text:
            raise _read_error(path, f"a NUL character in the line at byte {start}")
        # JSON can contain half of a surrogate pair.
        yield text.encode("utf-8", "replace").decode("utf-8"), end


def read_docbin(path: Path, offset: int) -> Iterator[Tuple[str, int]]:
    """Read the texts of docs in a .spacy file, which is loaded whole. Positions are numbers of
    docs. RAISES (ValueError): EL103 if it cannot be read, or a text contains NUL."""
    try:
        docs = load_docbin(path)
        strings = StringStore(docs.strings)
        n_docs = len(docs)
    except Exception as err:  # files of another kind fail anywhere
        raise _read_error(path, show_reason(err)) from err
    for i in range(offset, n_docs):
        # No annotations and user data.
        try:
            words = [strings[key] for key in docs.tokens[i][:, docs.attrs.index(ORTH)].tolist()]
            # spaCy writes a space behind each word if the spaces are unknown.
            known = not docs.flags[i].get("has_unknown_spaces")
            spaces = docs.spaces[i].ravel().tolist() if known else [True] * len(words)
            text = "".join(word + " " * space for word, space in zip(words, spaces, strict=True))
            if "\0" in text:
                raise ValueError("it has a NUL character")
        except Exception as err:
            raise _read_error(path, f"doc {i}: {err}") from err
        yield text, i + 1


def load_docbin(path: Path) -> DocBin:
    """Load a .spacy file, which may be compressed once more, if it has at most 4 GB unpacked. Files
    of another kind raise anything."""
    # In blocks: for one large read, a file would reserve the memory at once.
    buffer = BytesIO()
    with open_binary(path) as file:
        while buffer.tell() <= _MAX_DOCBIN and (block := file.read(_BLOCK)):
            buffer.write(block)
    content = buffer.getvalue()
    unpacker, n_bytes, rest = zlib.decompressobj(), len(content), content
    while rest and n_bytes <= _MAX_DOCBIN:
        n_bytes += len(unpacker.decompress(rest, _BLOCK))
        rest = unpacker.unconsumed_tail
    if n_bytes > _MAX_DOCBIN:
        raise ValueError(f"it has more than {_MAX_DOCBIN:,} bytes unpacked; write several files")
    return DocBin().from_bytes(content)


def _read_lines(
    path: Path, offset: int, max_line: int, *, is_cut: bool = True
) -> Iterator[Tuple[bytes, int]]:
    """Read lines, and the byte after each. Longer ones are cut behind a space; if they are not to
    be cut, the beginning of a longer one is the last line."""
    # The result depends on the start alone: a resumed run reads the same parts.
    rest = b""
    try:
        with open_binary(path) as file:
            file.seek(offset)
            while line := rest + file.readline(max_line + (not is_cut) - len(rest)):
                end = len(line)
                if is_cut and max_line <= end and not line.endswith(b"\n"):
                    end = line.rfind(b" ") + 1 or _find_last_character(line)
                line, rest = line[:end], line[end:]
                offset += end
                yield line, offset
    except DAMAGED as err:
        raise _read_error(path, err) from err


def _find_last_character(line: bytes) -> int:
    """Find where the last character of UTF-8, which may be cut off, begins."""
    begin = len(line) - 1
    while begin > len(line) - 4 and line[begin] & 0xC0 == 0x80:
        begin -= 1
    return begin or len(line)


def read_lines(path: Path) -> Iterator[Line]:
    """Read the lines of published data in UTF-8, plain or .gz, .xz, .zst. RAISES (ValueError):
    EL100, EL103, EL155 or EL197 for a file that cannot be read."""
    require_file(path)
    lines = _read_lines(path, 0, _MAX_DATA_LINE, is_cut=False)
    for number, (line, end) in enumerate(lines, 1):
        if len(line) > _MAX_DATA_LINE:
            raise line_error(path, number, f"it has more than {_MAX_DATA_LINE:,} bytes")
        text = decode(line, path, end - len(line)).strip(f"\r\n{BOM}")
        if number == 1 and "\r" in text:
            raise line_error(path, number, "it ends with \\r alone: \\n or \\r\\n is read")
        yield number, text


def read_blocks(path: Path) -> Iterator[List[Line]]:
    """As `read_lines`, for blocks of lines with empty lines between them, such as sentences in
    columns."""
    for has_text, lines in groupby(read_lines(path), key=lambda line: bool(line[1].strip())):
        if has_text:
            yield list(lines)


def split_cells(text: str) -> List[str]:
    """Split a line of columns at tabs if there are any, else at spaces."""
    # A first cell may be empty.
    return text.rstrip(" \t\r\n").split("\t") if "\t" in text.strip() else split_spaces(text)


def split_spaces(text: str) -> List[str]:
    """Split a line of columns at spaces and tabs; other spaces, such as that in "10 000", belong to
    words."""
    return [cell for cell in text.strip("\r\n").replace("\t", " ").split(" ") if cell]


def line_error(path: Path, number: int, problem: str) -> ValueError:
    """Make the error EL197 for a line, counted from 1; the problem is a clause."""
    return ValueError(Errors.EL197.format(path=path, line=number, problem=problem))
