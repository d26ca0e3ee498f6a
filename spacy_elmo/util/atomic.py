"""Atomic writes: to a temporary sibling, flushed to the disk, then renamed.

A reader finds the old content or the new content, never a part of either, even after a killed
process, a full disk or a power cut.
"""

import errno
import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Iterator

import srsly

from .locks import lock_name


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
    """Write a file to a temporary sibling, which is renamed at the end and removed after an
    error. If several processes write the same file, the last one wins. Its permissions stay what
    they were.

    path (Path): where. A device or a pipe, such as /dev/stdout, is written into.
    YIELDS (Path): the temporary file to write, with the same suffix.
    RAISES (OSError): as `write_file`.
    """
    if _is_device(path):
        yield path
        return
    path = _resolve(path)
    temporary = path.with_name(f"{path.stem}.{os.getpid()}.partial{path.suffix}")
    try:
        yield temporary
        _flush(temporary)
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _flush(path.parent)


def _is_device(path: Path) -> bool:
    if path.exists() and not path.is_file() and not path.is_dir():
        return True
    # Open files by another name, such as /dev/stdout, may be regular ones, and must not be
    # replaced for that. A disk in memory, /dev/shm, is one like others.
    where = path.absolute()
    return where.parent in (Path("/dev"), Path("/dev/fd")) or where.parts[1:2] == ("proc",)


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Write a folder to a temporary sibling, which replaces the folder at the end. After an
    error the old folder is kept; a process that is killed between the two renames leaves it
    as NAME.previous, which `find_folder` finds.

    The temporary name, .NAME.partial, is always the same, so that the next writer removes what a
    killed one left: weights are large. It is a hidden one, which no folder of a user's has.

    folder (Path): where.
    YIELDS (Path): an empty folder to write into.
    RAISES (ValueError): EL143 if another process is writing it.
    RAISES (OSError): if it cannot be written; the old content is kept then.
    """
    folder, previous = _resolve(folder), name_previous(folder)
    temporary = folder.with_name(f".{folder.name}.partial")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError as err:
        reason = os.strerror(errno.ENOTDIR)
        raise NotADirectoryError(errno.ENOTDIR, reason, str(folder.parent)) from err
    with lock_name(folder):
        if not folder.exists() and previous.exists():
            previous.rename(folder)
        shutil.rmtree(temporary, ignore_errors=True)
        if previous.exists():
            _discard(previous, temporary)
        temporary.mkdir()
        try:
            yield temporary
            for path in [*temporary.rglob("*"), temporary]:
                _flush(path)
            _replace_folder(temporary, folder, previous)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise


def _replace_folder(temporary: Path, folder: Path, previous: Path) -> None:
    # No system renames a folder over another one, and removing a folder is not atomic: the
    # old one is renamed first.
    if folder.exists():
        folder.rename(previous)
    try:
        temporary.rename(folder)
    except BaseException:
        if previous.exists() and not folder.exists():
            previous.rename(folder)
        raise
    _flush(folder.parent)
    if previous.exists():
        with suppress(OSError):
            _discard(previous, temporary)


def _discard(previous: Path, temporary: Path) -> None:
    # Under the temporary name, so that a folder that a killed process has half removed is
    # never taken for a whole one.
    previous.rename(temporary)
    shutil.rmtree(temporary, ignore_errors=True)


def find_folder(folder: Path) -> Path:
    """Find what `atomic_folder` wrote.

    folder (Path): where.
    RETURNS (Path): the folder; NAME.previous if a writer was killed while it replaced it.
    """
    if folder.exists():
        return folder
    previous = name_previous(folder)
    return previous if previous.is_dir() else folder


def name_previous(folder: Path) -> Path:
    """folder (Path): where. RETURNS (Path): its sibling NAME.previous, to which `atomic_folder`
    renames the old folder, and which it deletes in the end."""
    folder = _resolve(folder)
    return folder.with_name(f"{folder.name}.previous")


def _resolve(path: Path) -> Path:
    # The target of a link is replaced, not the link; "." and ".." get a name.
    return Path(os.path.realpath(path))


def _flush(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    if path.is_dir():
        # Windows cannot open folders, and some network file systems cannot flush them.
        with suppress(OSError):
            _flush_handle(path, os.O_RDONLY)
    else:
        # Opened for writing: Windows flushes nothing else.
        _flush_handle(path, os.O_RDWR)


def _flush_handle(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
