"""Read untrusted files: only regular files, of a bounded size, with clear errors."""

import json
import stat
from pathlib import Path
from typing import Any

from ..errors import Errors

# A description of a shape has 1 kB; a corpus's counts some MB.
JSON_BYTES = 200_000_000


def require_file(path: Path) -> int:
    """Check that a path can be read as a file: opening a pipe would wait for a writer.

    path (Path): the path.
    RETURNS (int): its size in bytes.
    RAISES (ValueError): EL100 if there is nothing, EL101 for a folder, pipe or device.
    """
    try:
        status = path.stat()
    except (OSError, ValueError) as err:
        raise ValueError(Errors.EL100.format(path=path)) from err
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe or a device"
        raise ValueError(Errors.EL101.format(path=path, kind=kind))
    return status.st_size


def read_file(path: Path, most: int) -> bytes:
    """Read a whole file.

    path (Path): the file.
    most (int): bytes that it can have.
    RETURNS (bytes): the content.
    RAISES (ValueError): EL100 and EL101 as `require_file`, EL102 if it is larger, EL103
        if it cannot be read.
    """
    size = require_file(path)
    if size > most:
        raise ValueError(Errors.EL102.format(path=path, size=size, most=most))
    try:
        return path.read_bytes()
    except OSError as err:
        raise ValueError(Errors.EL103.format(path=path, error=err)) from err


def read_json(path: Path, *, most: int = JSON_BYTES) -> Any:
    """Read JSON in UTF-8.

    path (Path): the file.
    most (int): bytes that it can have.
    RETURNS (Any): the content.
    RAISES (ValueError): EL100 to EL103 as `read_file`, EL103 also for other content.
    """
    try:
        return parse_json(read_file(path, most))
    except ContentError as err:
        raise ValueError(Errors.EL103.format(path=path, error=err)) from err


def read_json_object(path: Path, *, most: int = JSON_BYTES) -> dict[str, Any]:
    """As `read_json`, for a file that must hold an object (`{...}`).

    RAISES (ValueError): as `read_json`, EL103 also for other content.
    """
    try:
        return parse_json_object(read_file(path, most))
    except ContentError as err:
        raise ValueError(Errors.EL103.format(path=path, error=err)) from err


class ContentError(Exception):
    """What is wrong with the content of a file; its text becomes part of a message."""


def parse_json(content: bytes) -> Any:
    """content (bytes): JSON in UTF-8. RETURNS (Any): what it says. RAISES (ContentError): if it
    is none."""
    try:
        # Python's own parser: srsly's takes "1e" and the like for numbers.
        return json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as err:
        raise ContentError(f"it is no text in UTF-8 at byte {err.start}") from err
    except json.JSONDecodeError as err:
        raise ContentError(f"it is no JSON at line {err.lineno}, column {err.colno}") from err
    except (ValueError, RecursionError) as err:
        raise ContentError(f"it is no JSON: {err}") from err


def parse_json_object(content: bytes) -> dict[str, Any]:
    """As `parse_json`, for an object (`{...}`). RAISES (ContentError): also for anything else."""
    value = parse_json(content)
    if not isinstance(value, dict):
        raise ContentError(f"it holds {type(value).__name__}, expected an object {{...}}")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} stands for a number")


def is_system_error(err: BaseException) -> bool:
    """err (BaseException): of a library that reads a file. RETURNS (bool): Whether the system
    raised it. Libraries raise OSErrors for damaged content, too, but without an error number."""
    return isinstance(err, OSError) and err.errno is not None
