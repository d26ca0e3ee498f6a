"""Records of text files: a line of text or of JSON each. A line that is none is read as a record
with its problem, and reading goes on.

A reader is a callable `(path, start, keys) -> Iterator[(Record, Place)]` that yields each record
with the place after it; `start` is one of these places.
"""

import gzip
import json
import lzma
import math
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Iterator, NamedTuple, Optional, Tuple, Union
from uuid import UUID

from ..text.encoding import BOM
from ..text.text_files import open_binary, zstd
from ..utils import show_path, show_reason
from .records import GIVEN_UP, Place, Record

# Bytes of a line. A text of a person has fewer, and one that has more would fill the memory.
MOST_BYTES = 1 << 24
# Of damaged content. Other errors of the system may pass: the job stops, and can be resumed.
_DAMAGED = (
    EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, *([zstd.ZstdError] if zstd else []),
)  # fmt: skip
Item = Tuple[Record, Place]
Items = Iterator[Item]


class Keys(NamedTuple):
    """text (str), id (str): fields of JSON, columns of Parquet."""

    text: str
    id: str


class BadRecord(Exception):
    """What is wrong with a record; its text becomes the reason."""


def read_text_lines(path: Path, start: Place, keys: Keys) -> Iterator[Item]:
    """Read plain text: each line is a record; an empty one is none.

    path (Path): in UTF-8, compressed or not.
    start (Place), keys (Keys): see above.
    YIELDS (Item): as above.
    RAISES (OSError): if it cannot be read.
    """
    for line, number, place in _read_lines(path, start):
        yield _make(path, number, line, lambda text: (text, None)), place


def read_json_lines(path: Path, start: Place, keys: Keys) -> Iterator[Item]:
    """As `read_text_lines`, for JSON objects with a text and, if they like, an id."""
    for line, number, place in _read_lines(path, start):
        yield _make(path, number, line, lambda text: _parse(text, keys)), place


def give_up(path: Path, place: Place, err: Exception) -> Item:
    """path (Path): a damaged file. place (Place): before the damage. err (Exception): what is
    wrong. RETURNS (Item): the rest of the file, as one bad record."""
    problem = f"the file is damaged from here on: {show_reason(err)}"
    record = Record(show_path(path), place.number, problem=problem)
    return record, place._replace(offset=GIVEN_UP, number=place.number + 1)


def check_text(text: Any, what: str = "text") -> str:
    """text (Any): of a record. what (str): for messages. RETURNS (str): the same. RAISES
    (BadRecord): if it is no text."""
    if not isinstance(text, str):
        raise BadRecord(f"its {what} is {type(text).__name__}, expected a string")
    if "\0" in text:
        raise BadRecord(f"its {what} holds NUL (U+0000)")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as err:
        half = f"U+{ord(text[err.start]):04X}"
        raise BadRecord(f"its {what} holds half of a pair ({half}), no character") from err
    return text


def check_id(value: Any) -> Optional[str]:
    """value (Any): what a record is called. RETURNS (Optional[str]): the same as text; None for
    none. RAISES (BadRecord): if it is neither text nor a number nor a UUID."""
    if isinstance(value, float):
        # Integers of pandas, once one is missing.
        value = None if math.isnan(value) else int(value) if value.is_integer() else repr(value)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int, UUID)):
        raise BadRecord(f"its id is {type(value).__name__}, expected a string or a number")
    return check_text(str(value), "id")


def _read_lines(path: Path, start: Place) -> Iterator[Tuple[Union[bytes, str], int, Place]]:
    """YIELDS (Tuple[Union[bytes, str], int, Place]): line or what is wrong with it, number, and
    the place after it. A line that is too long comes cut; its rest is passed over."""
    offset, number = start.offset, start.number
    with path.open("rb") as raw, open_binary(path, raw) as file:
        try:
            if file is raw:
                file.seek(offset)
            else:
                _pass_over(file, offset)
            while line := file.readline(MOST_BYTES + 1):
                offset += len(line)
                if len(line) > MOST_BYTES and not line.endswith(b"\n"):
                    offset += _skip_line(file)
                number += 1
                if line.strip():
                    n_bytes = start.n_bytes + raw.tell()
                    yield line, number - 1, Place(start.file, offset, number, n_bytes)
        except _DAMAGED as err:
            problem = f"the file is damaged from here on: {show_reason(err)}"
            yield problem, number, Place(start.file, GIVEN_UP, number + 1, start.n_bytes)


def _pass_over(file: BinaryIO, n_bytes: int) -> None:
    """Read what was read before, line by line as it was then: what comes out of a compressed file
    before its damage depends on the pieces in which it is read."""
    while n_bytes > 0 and (line := file.readline(min(MOST_BYTES + 1, n_bytes))):
        n_bytes -= len(line)


def _skip_line(file: BinaryIO) -> int:
    """RETURNS (int): Bytes up to the end of the line."""
    n_bytes = 0
    while part := file.readline(MOST_BYTES):
        n_bytes += len(part)
        if part.endswith(b"\n"):
            break
    return n_bytes


def _make(path: Path, number: int, line: Union[bytes, str], parse: Any) -> Record:
    """RETURNS (Record): Of a line; with a problem if it is none."""
    source, known = show_path(path), None
    if isinstance(line, str):
        return Record(source, number, problem=line)
    try:
        if len(line) > MOST_BYTES:
            raise BadRecord(f"its line has more than {MOST_BYTES:,} bytes")
        text, name = parse(line.decode("utf-8").strip(f"\r\n{BOM}"))
        known = check_id(name)
        return Record(source, number, known, check_text(text))
    except UnicodeDecodeError as err:
        problem = f"it is no text in UTF-8 (byte {err.start} of the line)"
    except (BadRecord, ValueError, RecursionError) as err:
        problem = show_reason(err)
    shown = line[:MOST_BYTES].decode("utf-8", "backslashreplace")
    return Record(source, number, known, shown[:4096], problem=problem)


def _parse(line: str, keys: Keys) -> Tuple[Any, Any]:
    """RETURNS (Tuple[Any, Any]): Text and id. RAISES (BadRecord): if there is no text."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as err:
        raise BadRecord(f"it is no JSON: {err}") from err
    if not isinstance(value, dict) or keys.text not in value:
        raise BadRecord(f"it is no JSON object with a '{keys.text}'")
    return value[keys.text], value.get(keys.id)
