"""One writer at a time: a lock that the system releases when its process ends."""

import logging
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Iterator

from filelock import FileLock, Timeout

from ..errors import Errors, Warnings

logger = logging.getLogger("spacy_elmo")

LOCK_FILE = ".lock"
_SECONDS = 0.2


@contextmanager
def lock_folder(folder: Path, *, wait: bool) -> Iterator[None]:
    """Lock a folder for writing. Readers take no lock.

    folder (Path): to be written to; the file .lock stays in it.
    wait (bool): whether to wait for another writer, with a warning WL024.
    RAISES (ValueError): EL143 if there is another writer and `wait` is false.
    RAISES (OSError): if the folder is not writable.
    """
    lock = FileLock(str(folder / LOCK_FILE))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if not wait:
            raise ValueError(Errors.EL143.format(path=folder)) from None
        logger.warning(Warnings.WL024.format(path=folder))
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def lock_name(path: Path) -> Iterator[None]:
    """Lock a name that is to be written, such as that of a folder which is replaced as a whole.

    path (Path): absolute. Its sibling .NAME.lock is there as long as the lock is.
    RAISES (ValueError): EL143 if there is another writer.
    RAISES (OSError): if the folder above it is not writable.
    """
    sibling = path.with_name(f".{path.name}{LOCK_FILE}")
    lock = FileLock(str(sibling))
    try:
        # One that has just been released, and removed, is taken at the second attempt.
        lock.acquire(timeout=_SECONDS)
    except Timeout:
        raise ValueError(Errors.EL143.format(path=path)) from None
    try:
        yield
    finally:
        # Before it is released: who waits for it looks whether it is still there.
        with suppress(OSError):
            sibling.unlink(missing_ok=True)
        lock.release()
