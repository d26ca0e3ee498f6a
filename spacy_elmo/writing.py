"""Write beside a place, and then there: what is read is never half written."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator


def write_beside(path: Path, content: bytes) -> None:
    """Write a file.

    path (Path): where.
    content (bytes): what.
    """
    with file_beside(path) as beside:
        beside.write_bytes(content)


@contextmanager
def file_beside(path: Path) -> Iterator[Path]:
    """Have a file written that takes its name at the end; after an error nothing is left.
    Of several processes that write the same file, one is the last.

    path (Path): where.
    YIELDS (Path): what to write, with the same ending.
    """
    beside = path.with_name(f"{path.stem}.{os.getpid()}.partial{path.suffix}")
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def folder_beside(folder: Path) -> Iterator[Path]:
    """Have a folder written that takes its name, and the place of what was there, at the
    end. Its name before that is always the same, so that the next writer clears away what a
    killed one left: weights are large.

    folder (Path): where.
    YIELDS (Path): an empty folder to write into.
    """
    beside = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    yield beside
    shutil.rmtree(folder, ignore_errors=True)
    beside.rename(folder)
