"""The standard input as a file, so that training can start over and resume."""

import logging
import shutil
import sys
import tempfile
from pathlib import Path
from typing import IO, Optional

from ..errors import Errors, Warnings
from ..files import DIGESTS_FILE, atomic_file, check_digests, digest_file, write_json
from .encoding import BOM, decode
from .file_formats import read_text

logger = logging.getLogger("spacy_elmo")

STDIN = "-"


def spool_path(folder: Path) -> Path:
    """folder (Path): a run's. RETURNS (Path): where the standard input is saved."""
    return folder / "stdin.txt"


def spool_stdin(folder: Path, stdin: Optional[IO[bytes]] = None) -> Path:
    """Save the standard input as a file, with its digest.

    folder (Path): where to put it.
    stdin (Optional[IO[bytes]]): what to read; the process's own if None.
    RETURNS (Path): the file. If it is there already, nothing is read, and a warning WL011
        says so.
    RAISES (ValueError): EL157 if no text comes, EL155 if it is not in UTF-8; nothing is
        saved then. EL104 if what is there is damaged.
    """
    path = spool_path(folder)
    if path.exists():
        check_digests(folder, [path.name])
        logger.warning(Warnings.WL011.format(path=path))
        return path
    folder.mkdir(parents=True, exist_ok=True)
    _remove_unfinished(path)
    # None if it was closed before Python began.
    stdin = stdin or getattr(sys.stdin, "buffer", None)
    if stdin is None:
        raise ValueError(Errors.EL157)
    with atomic_file(path) as partial:
        with partial.open("wb") as file:
            shutil.copyfileobj(stdin, file)
        if not partial.stat().st_size:
            raise ValueError(Errors.EL157)
        # Before the text: one without a digest would be taken for that of an older run.
        write_json(folder / DIGESTS_FILE, {path.name: digest_file(partial)})
    try:
        # All of it, so that what is no text is told.
        if not sum(bool(text.strip()) for text, _ in read_text(path, 0)):
            raise ValueError(Errors.EL157)
    except ValueError:
        path.unlink()
        raise
    return path


def read_stdin() -> str:
    """RETURNS (str): All of the process's standard input, whatever encoding the system has. RAISES
    (ValueError): EL157 if nothing comes, EL155 if it is not in UTF-8."""
    with tempfile.TemporaryDirectory() as folder:
        path = spool_stdin(Path(folder))
        return decode(path.read_bytes(), path, 0).removeprefix(BOM)


def _remove_unfinished(path: Path) -> None:
    """Remove the temporary files of killed processes: texts are large."""
    for unfinished in path.parent.glob(f"{path.stem}.*.partial{path.suffix}"):
        unfinished.unlink(missing_ok=True)
