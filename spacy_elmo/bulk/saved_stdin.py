"""The standard input of a job, which is saved in its folder so that the job can be resumed."""

import shutil
import sys
from pathlib import Path
from typing import IO, Optional

from ..errors import Errors
from ..files import atomic_file
from ..utils import require_known
from .job_files import is_job_folder

# Formats that it can have.
STDIN_FORMATS = ("txt", "jsonl")
_CHUNK = 1 << 20


def save_stdin(folder: Path, format: str, stdin: Optional[IO[bytes]] = None) -> Path:
    """Save the standard input, or compare it with what a job has saved that is resumed.

    folder (Path): of the job.
    format (str): one of `STDIN_FORMATS`.
    stdin (Optional[IO[bytes]]): what to read; the process's own if None.
    RETURNS (Path): the file.
    RAISES (ValueError): EL017 for another format, EL157 if nothing comes; of a job that is resumed,
        EL245 if it was another format, EL246 if it has read files, EL298 if it was another text.
        One that is empty, or a terminal, is as what was saved.
    RAISES (OSError): if it cannot be saved.
    """
    require_known("input format", format, STDIN_FORMATS)
    for other in STDIN_FORMATS:
        if other != format and _name(folder, other).exists():
            shown = {"key": "input_format", "before": other, "now": format}
            raise ValueError(Errors.EL245.format(path=folder, **shown))
    path = _name(folder, format)
    stdin = stdin or getattr(sys.stdin, "buffer", None)
    if path.exists():
        if stdin is not None and not stdin.isatty() and not _is_same(stdin, path):
            raise ValueError(Errors.EL298.format(path=folder, name=path.name))
        return path
    if is_job_folder(folder):
        raise ValueError(Errors.EL246.format(path=folder, names="the standard input: new"))
    with atomic_file(path) as partial:
        with partial.open("wb") as file:
            if stdin is not None:
                shutil.copyfileobj(stdin, file)
        if not partial.stat().st_size:
            raise ValueError(Errors.EL157)
    return path


def _name(folder: Path, format: str) -> Path:
    return folder / f"_stdin.{format}"


def _is_same(stdin: IO[bytes], path: Path) -> bool:
    """RETURNS (bool): Whether nothing comes, or just what is in the file."""
    with path.open("rb") as file:
        part = stdin.read(_CHUNK)
        if not part:
            return True
        while part and part == file.read(len(part)):
            part = stdin.read(_CHUNK)
        return not part and not file.read(1)
