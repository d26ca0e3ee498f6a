"""Load `.spacy` files of strangers: what they hold unpacked is bounded."""

import zlib
from io import BytesIO
from pathlib import Path
from typing import IO

from spacy.tokens import DocBin

from .text_files import open_binary

# Bytes of a DocBin, unpacked: it is loaded whole. Four million docs of twenty tokens have less.
MOST_BYTES = 1 << 32
_CHUNK = 1 << 16
_STEP = 1 << 22


def load_docbin(path: Path) -> DocBin:
    """path (Path): a .spacy file, which may be compressed once more. RETURNS (DocBin): as
    spaCy reads it. RAISES (ValueError): if it has more than `MOST_BYTES`, with the reason
    alone; else whatever reading a file of another kind raises."""
    with open_binary(path) as file:
        content = _read_bounded(file)
    if len(content) > MOST_BYTES or _is_larger(content):
        problem = f"it is larger than {MOST_BYTES:,} bytes unpacked; write several files"
        raise ValueError(problem)
    return DocBin().from_bytes(content)


def _read_bounded(file: IO[bytes]) -> bytes:
    """Up to a step more than the bound. Not in one call, for which a file makes room at once."""
    buffer = BytesIO()
    while buffer.tell() <= MOST_BYTES and (chunk := file.read(_STEP)):
        buffer.write(chunk)
    return buffer.getvalue()


def _is_larger(content: bytes) -> bool:
    """Whether zlib unpacks it to more than the bound; in little memory."""
    unpacker = zlib.decompressobj()
    n_bytes = 0
    for start in range(0, len(content), _CHUNK):
        rest = content[start : start + _CHUNK]
        while rest and n_bytes <= MOST_BYTES:
            n_bytes += len(unpacker.decompress(rest, _STEP))
            rest = unpacker.unconsumed_tail
    return n_bytes > MOST_BYTES
