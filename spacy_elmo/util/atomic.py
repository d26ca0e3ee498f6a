"""Atomic writing: into a temporary sibling, flushed to the disk, then renamed.

A reader finds what was there before or what is there now, never a part of it, also after
a killed process, a full disk or a power cut.
"""

import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Iterator

import srsly


def write_file(path: Path, content: bytes) -> None:
    """Write a file atomically.

    path (Path): where.
    content (bytes): what.
    RAISES (OSError): if it cannot be written; the old content is kept then.
    """
    with atomic_file(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: Path, content: Any) -> None:
    """Write JSON atomically.

    path (Path): where; folders above it are made.
    content (Any): in JSON's types.
    RAISES (OSError): as `write_file`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, srsly.json_dumps(content, indent=2).encode("utf-8"))


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Have a file written that takes its name at the end; after an error nothing is left.
    Of several processes that write the same file, the last one wins.

    path (Path): where. A device or a pipe, such as /dev/stdout, is written into.
    YIELDS (Path): what to write, with the same ending.
    RAISES (OSError): as `write_file`.
    """
    if _is_device(path):
        yield path
        return
    temporary = path.with_name(f"{path.stem}.{os.getpid()}.partial{path.suffix}")
    try:
        yield temporary
        _flush(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _flush(path.parent)


def _is_device(path: Path) -> bool:
    # /dev/stdout may lead to a regular file, and must not be replaced for that.
    is_other = path.exists() and not path.is_file() and not path.is_dir()
    return is_other or path.absolute().parts[1:2] in (("dev",), ("proc",))


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Have a folder written that takes its name, and the place of what was there, at the
    end. After an error the old folder is there; a process that is killed between the two
    renames leaves it as NAME.previous, where `find_folder` looks.

    The temporary name is always the same, so that the next writer clears away what a
    killed one left: weights are large.

    folder (Path): where.
    YIELDS (Path): an empty folder to write into.
    RAISES (OSError): if it cannot be written; the old content is kept then.
    """
    temporary, previous = folder.with_name(f"{folder.name}.partial"), _previous(folder)
    if not folder.exists() and previous.exists():
        previous.rename(folder)
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        for path in [*temporary.rglob("*"), temporary]:
            _flush(path)
        _replace_folder(temporary, folder, previous)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _replace_folder(temporary: Path, folder: Path, previous: Path) -> None:
    # No system renames a folder over another one, and one that is being removed is half
    # a folder: the old one steps aside first.
    shutil.rmtree(previous, ignore_errors=True)
    if folder.exists():
        folder.rename(previous)
    try:
        temporary.rename(folder)
    except BaseException:
        if previous.exists() and not folder.exists():
            previous.rename(folder)
        raise
    _flush(folder.parent)
    shutil.rmtree(previous, ignore_errors=True)


def find_folder(folder: Path) -> Path:
    """Find what `atomic_folder` wrote.

    folder (Path): where.
    RETURNS (Path): the folder; NAME.previous if a writer was killed while it replaced it.
    """
    previous = _previous(folder)
    return previous if not folder.exists() and previous.is_dir() else folder


def _previous(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.previous")


def _flush(path: Path) -> None:
    """Have the system write a file, or the names in a folder, to the disk."""
    if path.is_dir():
        # Windows opens no folders, and some file systems of networks flush none.
        with suppress(OSError):
            _flush_handle(path, os.O_RDONLY)
    else:
        # For writing: Windows flushes nothing else.
        _flush_handle(path, os.O_RDWR)


def _flush_handle(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
