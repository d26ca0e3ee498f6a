"""One writer at a time: a lock that the system releases when its process ends."""

import logging
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

from filelock import FileLock, Timeout

from ..errors import Errors, Warnings

logger = logging.getLogger("spacy_elmo")

LOCK_FILE = ".lock"


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
