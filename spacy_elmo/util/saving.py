"""The data of a component: a few files in a folder, or in one message, with their digests.

Data without digests, of an older version, is read, too.
"""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Collection, Dict, Mapping

import srsly

from ..errors import Errors
from .atomic import write_file, write_json
from .digests import DIGESTS_FILE, check_contents, digest, read_digests
from .reading import read_file
from .unpacking import unpack

_DIGESTS = "digests"
# No limit, for a message that is in memory already.
ANY_SIZE = sys.maxsize


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files, each atomically. The folder may hold others, which stay as they are with their
    digests, and is never replaced: a process that is killed in between leaves each file old or
    new, and no digests.

    folder (Path): where; made if need be.
    files (Mapping[str, bytes]): name -> content.
    RAISES (OSError): if one cannot be written; its old content is kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    others: Dict[str, Any] = {}
    # A damaged one says nothing of the others.
    with suppress(ValueError):
        others = read_digests(folder)
    (folder / DIGESTS_FILE).unlink(missing_ok=True)
    for name, content in files.items():
        write_file(folder / name, content)
    write_json(folder / DIGESTS_FILE, {**others, **_get_digests(files)})


def read_files(folder: Path, most: Mapping[str, int]) -> Dict[str, bytes]:
    """Read what `write_files` wrote.

    folder (Path): where.
    most (Mapping[str, int]): name -> bytes that the file can have.
    RETURNS (Dict[str, bytes]): name -> content, of all names.
    RAISES (ValueError): EL104 if a file is not what was written, EL100 to EL103 if it
        cannot be read.
    """
    files = {name: read_file(folder / name, size) for name, size in most.items()}
    check_contents(folder, files)
    return files


def join_files(files: Mapping[str, bytes]) -> bytes:
    """files (Mapping[str, bytes]): name -> content. RETURNS (bytes): one message."""
    return srsly.msgpack_dumps({**files, _DIGESTS: _get_digests(files)})


def split_files(
    data: bytes, most: Mapping[str, int], source: str, *, optional: Collection[str] = ()
) -> Dict[str, bytes]:
    """Read a message of `join_files`.

    data (bytes): the message.
    most (Mapping[str, int]): the names that there can be -> bytes of each.
    source (str): what the message is, for errors.
    optional (Collection[str]): names that may be missing.
    RETURNS (Dict[str, bytes]): name -> content, of the names that are there.
    RAISES (ValueError): EL116 if it cannot be read, holds other names, or is not what was
        written.
    """
    message = unpack(data, source, most_items=len(most) + 1)
    if not isinstance(message, dict):
        raise _make_error(source, f"they hold {type(message).__name__}, expected files by name")
    digests = message.pop(_DIGESTS, None)
    files = {name: _read_content(content) for name, content in message.items()}
    for name, content in files.items():
        if name not in most:
            raise _make_error(source, f"they hold {name!r:.50}, expected {', '.join(most)}")
        if content is None or len(content) > most[name]:
            raise _make_error(source, f"'{name}' is no file of at most {most[name]} bytes")
    missing = [name for name in most if name not in files and name not in optional]
    if missing:
        raise _make_error(source, f"they lack {', '.join(missing)}")
    if digests is not None and digests != _get_digests(files):
        raise _make_error(source, "the digests are not those of the content")
    return files


def _read_content(content: Any) -> Any:
    # spaCy writes JSON as text.
    if isinstance(content, str):
        return content.encode("utf-8", errors="replace")
    return content if isinstance(content, bytes) else None


def _get_digests(files: Mapping[str, bytes]) -> Dict[str, str]:
    return {name: digest(content) for name, content in files.items()}


def _make_error(source: str, error: str) -> ValueError:
    return ValueError(Errors.EL116.format(source=source, error=error))
