"""Digests of a folder's files: stored when they are written, checked when they are read.

They detect damage (a bad disk, a broken download), not forgery: who changes a file on purpose
can change its digest, too.
"""

from hashlib import blake2b
from pathlib import Path
from typing import Any, Dict, Iterable, Mapping, Optional

import srsly

from ..errors import Errors
from .reading import read_json_object, require_file

DIGESTS_FILE = "digests.json"
_N_BYTES = 1 << 20
# Pieces of a file that `digest_pieces` reads, and bytes of each.
_N_PIECES = 64
_PIECE = 1 << 16
# Up to so many bytes, they are the whole file.
MOST_OF_PIECES = _N_PIECES * _PIECE


def digest(content: bytes) -> str:
    """content (bytes): anything. RETURNS (str): its BLAKE2b of 16 bytes, in hexadecimal."""
    return blake2b(content, digest_size=16).hexdigest()


def digest_file(path: Path) -> str:
    """path (Path): a file. RETURNS (str): as `digest`, in bounded memory. RAISES
    (ValueError): EL100 or EL101 if it is none, EL103 if it cannot be read."""
    require_file(path)
    running = blake2b(digest_size=16)
    try:
        with path.open("rb") as file:
            while part := file.read(_N_BYTES):
                running.update(part)
    except OSError as err:
        raise ValueError(Errors.EL103.format(path=path, error=err)) from err
    return running.hexdigest()


def digest_pieces(path: Path) -> str:
    """path (Path): a file, of which a corpus may have terabytes. RETURNS (str): as `digest`, of all
    of a small file, and of pieces all over a large one. RAISES (OSError): if it cannot be read."""
    running = blake2b(digest_size=16)
    size = path.stat().st_size
    step = max(_PIECE, (size - _PIECE) // (_N_PIECES - 1))
    with path.open("rb") as file:
        for start in range(0, size, step):
            file.seek(min(start, max(0, size - _PIECE)))
            running.update(file.read(_PIECE))
    return running.hexdigest()


def write_digests(folder: Path) -> None:
    """Write digests.json with the digest of each file in a folder. To be called last.

    folder (Path): the temporary one of `atomic_folder`.
    """
    digests = {path.name: digest_file(path) for path in sorted(folder.iterdir()) if path.is_file()}
    digests.pop(DIGESTS_FILE, None)
    (folder / DIGESTS_FILE).write_bytes(srsly.json_dumps(digests).encode("utf-8"))


def check_digests(folder: Path, names: Iterable[str], *, known_only: bool = False) -> None:
    """Check files before they are used. A folder without digests, of an older version, passes.

    folder (Path): with digests.json, or without.
    names (Iterable[str]): the files that are used.
    known_only (bool): whether files that digests.json does not name pass: those that were
        added later.
    RAISES (ValueError): EL104 if one is not what was written, EL100 to EL103 if it or
        digests.json cannot be read.
    """
    digests = _read_digests(folder)
    if digests is None:
        return
    for name in names:
        if not known_only or name in digests:
            _require_same(folder, name, digests, digest_file(folder / name))


def check_contents(folder: Path, files: Mapping[str, bytes]) -> None:
    """As `check_digests`, for files that were read already.

    folder (Path): with digests.json, or without.
    files (Mapping[str, bytes]): name -> content, as it was read.
    RAISES (ValueError): EL104 if one is not what was written, EL100 to EL103 if digests.json
        cannot be read.
    """
    digests = _read_digests(folder)
    if digests is None:
        return
    for name, content in files.items():
        _require_same(folder, name, digests, digest(content))


def read_digests(folder: Path) -> Dict[str, Any]:
    """folder (Path): with digests.json, or without. RETURNS (Dict[str, Any]): name -> digest of
    each file that it names. RAISES (ValueError): EL100 to EL103 if it cannot be read."""
    return _read_digests(folder) or {}


def _read_digests(folder: Path) -> Optional[Dict[str, Any]]:
    path = folder / DIGESTS_FILE
    return read_json_object(path, most=_N_BYTES) if path.exists() else None


def _require_same(folder: Path, name: str, digests: Mapping[str, Any], found: str) -> None:
    if digests.get(name) != found:
        path = folder / DIGESTS_FILE
        raise ValueError(Errors.EL104.format(path=folder / name, digests=path))


def check_all_digests(folder: Path) -> bool:
    """Check every file that digests.json names.

    folder (Path): with digests.json, or without.
    RETURNS (bool): whether there is a digests.json.
    RAISES (ValueError): as `check_digests`.
    """
    path = folder / DIGESTS_FILE
    if not path.exists():
        return False
    check_digests(folder, read_json_object(path))
    return True
