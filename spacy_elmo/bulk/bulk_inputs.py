"""The files of a job, and whether they are the same as when it began."""

import shutil
import sys
from functools import partial
from pathlib import Path
from typing import IO, Callable, Dict, Iterator, List, Optional, Sequence

from ..errors import Errors
from ..text.stdin import STDIN
from ..text.text_files import find_files, get_format, open_binary
from ..util.atomic import atomic_file
from ..util.checks import require_known
from .docbin_records import read_docs
from .job_files import is_job_folder
from .parquet_records import read_parquet, require_columns
from .record_readers import Item, Keys, read_json_lines, read_text_lines, show_path
from .records import GIVEN_UP, Place

Reader = Callable[[Path, Place, Keys], Iterator[Item]]
READERS: Dict[str, Reader] = {
    "jsonl": read_json_lines,
    "parquet": read_parquet,
    "spacy": read_docs,
    "txt": read_text_lines,
}
# Formats that the standard input can have.
STDIN_FORMATS = ("txt", "jsonl")


def find_inputs(text: str, output: Path, stdin_format: str = "txt") -> List[Path]:
    """Find what a job reads.

    text (str): file, folder or glob; "-" for the standard input, which is saved in the job's
        folder, so that the job can be resumed.
    output (Path): folder of the job, which may lie among the texts.
    stdin_format (str): one of `STDIN_FORMATS`.
    RETURNS (List[Path]): at least one file, sorted by name. Below a folder, names that begin with
        a dot or an underscore are left out, as other programs do, and so are folders of jobs.
    RAISES (ValueError): EL017 for another format of the standard input, EL157 if nothing comes,
        EL080 if all files are of the job itself; else as `find_files`.
    RAISES (OSError): if the standard input cannot be saved.
    """
    if text == STDIN:
        require_known("input format", stdin_format, STDIN_FORMATS)
        return [save_stdin(output / f"_stdin.{stdin_format}")]
    known = sorted(READERS)
    files = find_files(text, known, partial(_is_excluded, Path(text), output.resolve()))
    files = [path for path in files if output.resolve() not in path.resolve().parents]
    if not files:
        raise ValueError(Errors.EL080.format(path=text, known=", ".join(known)))
    return files


def _is_excluded(folder: Path, output: Path, path: Path) -> bool:
    """RETURNS (bool): Whether a file below a folder is no text that was meant: it is hidden, or
    what this job or another one has written."""
    parents = [folder / parent for parent in path.relative_to(folder).parents][:-1]
    is_marked = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    return is_marked or output in path.resolve().parents or any(map(is_job_folder, parents))


def save_stdin(path: Path, stdin: Optional[IO[bytes]] = None) -> Path:
    """path (Path): where; what is there already is kept. stdin (Optional[IO[bytes]]): what to
    read; the process's own if None. RETURNS (Path): the same. RAISES: see `find_inputs`."""
    if not path.exists():
        with atomic_file(path) as partial:
            with partial.open("wb") as file:
                shutil.copyfileobj(stdin or sys.stdin.buffer, file)
            if not partial.stat().st_size:
                raise ValueError(Errors.EL157)
    return path


def require_readable(files: List[Path], keys: Keys) -> None:
    """Check what would stop a job in its middle.

    files (List[Path]): of a job.
    keys (Keys): of texts and ids.
    RAISES (ValueError): EL250 and EL296 for Parquet without fitting columns, EL240 and EL082 if a
        package is missing.
    RAISES (OSError): if a file cannot be opened.
    """
    for path in files:
        if get_format(path) == "parquet":
            require_columns(path, keys)
        else:
            open_binary(path).close()


def read_all(
    files: List[Path], start: Place, keys: Keys, sources: Sequence[str] = ()
) -> Iterator[Item]:
    """Read files one after the other.

    files (List[Path]): of a job.
    start (Place): where to begin.
    keys (Keys): of texts and ids.
    sources (Sequence[str]): what records have as their source, file by file; their paths if empty.
    YIELDS (Item): records, each with the place after it.
    RAISES: as the readers.
    """
    n_before = sum(path.stat().st_size for path in files[: start.file])
    for number in range(start.file, len(files)):
        path = files[number]
        first = start if number == start.file else Place(number)
        if first.offset < GIVEN_UP:
            reader = READERS[get_format(path)]
            items = reader(path, first._replace(file=number, n_bytes=n_before), keys)
            if sources and sources[number] != show_path(path):
                items = _rename(items, sources[number])
            yield from items
        n_before += path.stat().st_size


def _rename(items: Iterator[Item], source: str) -> Iterator[Item]:
    for record, place in items:
        yield record._replace(source=source), place
