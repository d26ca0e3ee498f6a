"""One writer at a time: a lock that the system takes back when its process ends."""

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
    """Keep others from writing into a folder. Readers do not ask.

    folder (Path): what is written into; its file .lock stays there.
    wait (bool): for another process that writes there, with a warning WL024.
    RAISES (ValueError): EL143 if another process writes there and `wait` is false.
    RAISES (OSError): if the folder cannot be written into.
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
