"""Text in UTF-8; for anything else an error with its place and likely encoding."""

import codecs
from pathlib import Path
from typing import NamedTuple, Tuple

from ..errors import Errors
from .text_files import open_binary

# Windows' mark (BOM) of UTF-8: in front of a file, and in the middle of files that were joined.
BOM = "\ufeff"
# Bytes read at a time to find a place again, and those around it that are inspected.
_PART = 1 << 20
_N_AROUND = 2048
# A share of zero bytes that single ones in a text do not come to, and UTF-16 does: its
# spaces have one, whatever the script.
_MANY_ZEROS = 0.02
# Share of them at even places, or at odd ones, in UTF-16.
_MOST = 0.8
# A share of control characters that no text comes to.
_MANY_CONTROLS = 0.05

_BOMS = (
    # UTF-32's begins as UTF-16's does.
    (codecs.BOM_UTF32_LE, "UTF-32LE"),
    (codecs.BOM_UTF32_BE, "UTF-32BE"),
    (codecs.BOM_UTF16_LE, "UTF-16LE"),
    (codecs.BOM_UTF16_BE, "UTF-16BE"),
)
# What a file of another kind begins with, what it is, and what to do.
_DECOMPRESS = "Give its name the ending {ending}"
_EXTRACT = "Extract the text from it"
_KINDS = (
    (b"\x1f\x8b", "gzip data", _DECOMPRESS.format(ending=".gz")),
    (b"\xfd7zXZ\0", "xz data", _DECOMPRESS.format(ending=".xz")),
    (b"\x28\xb5\x2f\xfd", "zstd data", _DECOMPRESS.format(ending=".zst")),
    (b"BZh", "bzip2 data", "Decompress it, or compress it as .gz, .xz or .zst"),
    (b"PK\x03\x04", "a ZIP archive (or .docx, .xlsx, .epub)", _EXTRACT),
    (b"%PDF-", "a PDF", _EXTRACT),
    (b"\x89PNG", "a picture", "Give a text"),
    (b"\xff\xd8\xff", "a picture", "Give a text"),
    (b"\x89HDF", "HDF5 data", "Give a text"),
)
_CONVERT = "Convert it, such as with `iconv -f {name} -t UTF-8`"


class Guess(NamedTuple):
    """What a file may be. kind (str): a noun. remedy (str): what to do, a sentence
    without its end."""

    kind: str
    remedy: str


_NO_TEXT = Guess("no text at all", "Give a text")


def decode(line: bytes, path: Path, offset: int) -> str:
    """Decode a part of a file.

    line (bytes): whole characters, if they are in UTF-8.
    path (Path): the file, for messages.
    offset (int): of the line in it, decompressed bytes.
    RETURNS (str): the text.
    RAISES (ValueError): EL155 if it is not UTF-8, or holds NUL.
    """
    zero = line.find(b"\0")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as err:
        place = min(err.start, zero) if zero >= 0 else err.start
        raise _no_text(path, offset + place) from err
    if zero >= 0:
        raise _no_text(path, offset + zero)
    return text


def require_no_null(text: str, path: Path, place: str) -> None:
    """text (str): of a format that says itself how it is encoded. path (Path): of the file.
    place (str): in it. RAISES (ValueError): EL156 if it holds NUL."""
    if "\0" in text:
        raise ValueError(Errors.EL156.format(path=path, place=place))


def _no_text(path: Path, place: int) -> ValueError:
    line, sample, start = _find(path, place)
    with open_binary(path) as file:
        head = file.read(max(len(mark) for mark, *_ in _KINDS))
    guess = guess_encoding(head, sample, start)
    byte = f"0x{sample[place - start]:02x}"
    return ValueError(
        Errors.EL155.format(
            path=path, byte=place, line=line, found=byte, guess=guess.kind, remedy=guess.remedy
        )
    )


def _find(path: Path, place: int) -> Tuple[int, bytes, int]:
    """The number of the line that a byte is in, from 1; the bytes around it; and the place
    of the first of these."""
    start = max(0, place - _N_AROUND)
    n_lines, left = 1, start
    with open_binary(path) as file:
        while left and (part := file.read(min(_PART, left))):
            n_lines += part.count(b"\n")
            left -= len(part)
        sample = file.read(2 * _N_AROUND)
    return n_lines + sample[: place - start].count(b"\n"), sample, start


def guess_encoding(head: bytes, sample: bytes, start: int) -> Guess:
    """Guess what text is that is not in UTF-8.

    head (bytes): what the file begins with.
    sample (bytes): some bytes around the first wrong one.
    start (int): place of the sample in the file.
    RETURNS (Guess): what it may be.
    """
    for mark, name in _BOMS:
        if head.startswith(mark):
            return Guess(f"{name} with a mark (BOM)", _CONVERT.format(name=name))
    for mark, kind, remedy in _KINDS:
        if head.startswith(mark):
            return Guess(kind, remedy)
    n_zeros = sample.count(0)
    if n_zeros > max(1, _MANY_ZEROS * len(sample)):
        return _guess_zeros(sample, start)
    text = sample.decode("utf-8", "replace")
    n_wrong = text.count("\ufffd")
    n_right = sum(not char.isascii() for char in text) - n_wrong
    n_control = sum(byte < 0x20 and byte not in b"\t\n\r\f\0" for byte in sample)
    if n_control > _MANY_CONTROLS * len(sample):
        return _NO_TEXT
    # What is cut off at either end of the sample is not wrong.
    if n_zeros and n_wrong <= 2:
        return Guess("text with NUL in it", "Remove that, such as with `tr -d '\\000'`")
    if n_right > n_wrong:
        remedy = "Drop what is damaged, such as with `iconv -c -f UTF-8 -t UTF-8`"
        return Guess("UTF-8 with damaged bytes in it", remedy)
    return _NO_TEXT if n_zeros else _guess_bytes(sample)


def _guess_zeros(sample: bytes, start: int) -> Guess:
    """The highest byte of four is always zero in UTF-32; of two it mostly is, where there are
    zeros in UTF-16 at all: those of spaces."""
    columns = [sample[-(start - i) % 4 :: 4] for i in range(4)]
    counts = [column.count(0) for column in columns]
    is_even = (counts[0] + counts[2]) / sum(counts)
    for name, is_likely in (
        ("UTF-32LE", counts[3] == len(columns[3])),
        ("UTF-32BE", counts[0] == len(columns[0])),
        ("UTF-16LE", is_even <= 1 - _MOST),
        ("UTF-16BE", is_even >= _MOST),
    ):
        if is_likely:
            return Guess(name, _CONVERT.format(name=name))
    return _NO_TEXT


def _guess_bytes(sample: bytes) -> Guess:
    """Letters with accents stand alone in latin-1; other scripts are written with such
    bytes throughout."""
    high = [byte > 0x7F for byte in sample]
    n_runs = sum(now and not earlier for now, earlier in zip(high, [False, *high]))
    if sum(high) < 2 * n_runs:
        return Guess("latin-1 or cp1252", _CONVERT.format(name="CP1252"))
    kind = "an encoding of another script, such as EUC-KR, GB18030, Shift-JIS or cp1251"
    return Guess(kind, _CONVERT.format(name="EUC-KR"))
