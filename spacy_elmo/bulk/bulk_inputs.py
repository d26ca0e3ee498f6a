"""The files of a job, and whether they are the same as when it began."""

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Sequence

from ..errors import Errors
from ..search.index_files import is_index_folder
from ..text.file_formats import ends_with_returns
from ..text.stdin import STDIN
from ..text.text_files import DAMAGED, find_files, get_format, is_hidden, open_binary
from ..utils import show_path
from .docbin_records import read_docs
from .job_files import is_job_folder
from .parquet_records import read_parquet, require_columns
from .record_readers import MOST_BYTES, Item, Keys, read_json_lines, read_text_lines
from .records import GIVEN_UP, Place
from .saved_stdin import save_stdin

Reader = Callable[[Path, Place, Keys], Iterator[Item]]
READERS: Dict[str, Reader] = {
    "jsonl": read_json_lines,
    "parquet": read_parquet,
    "spacy": read_docs,
    "txt": read_text_lines,
}


def find_inputs(text: str, output: Path, stdin_format: str = "txt") -> List[Path]:
    """Find what a job reads.

    text (str): file, folder or glob; "-" for the standard input.
    output (Path): folder of the job, which may lie among the texts.
    stdin_format (str): its format, see `save_stdin`.
    RETURNS (List[Path]): at least one file, sorted by name. Below a folder, names that begin with
        a dot or an underscore are left out, as other programs do, and so are folders of jobs and
        of indexes.
    RAISES (ValueError): as `save_stdin` and `find_files`.
    RAISES (OSError): if the standard input cannot be saved.
    """
    if text == STDIN:
        return [save_stdin(output, stdin_format)]
    return find_files(text, sorted(READERS), partial(is_excluded, Path(text)), output)


def is_excluded(folder: Path, path: Path) -> bool:
    """folder (Path): of texts. path (Path): of a file, from there on. RETURNS (bool): Whether it is
    no text that was meant: as `is_hidden_or_written`, or marked by "_", as other systems mark what
    is none (_SUCCESS)."""
    is_marked = any(part.startswith("_") for part in path.parts)
    return is_marked or is_hidden_or_written(folder, path)


def is_hidden_or_written(folder: Path, path: Path) -> bool:
    """folder (Path), path (Path): as in `is_excluded`. RETURNS (bool): Whether it is hidden or
    what a job or an index has written."""
    parents = [folder / parent for parent in path.parents][:-1]
    return is_hidden(path) or any(is_job_folder(p) or is_index_folder(p) for p in parents)


def require_readable(files: List[Path], keys: Keys) -> None:
    """Check what would stop a job in its middle.

    files (List[Path]): of a job.
    keys (Keys): of texts and ids.
    RAISES (ValueError): EL250 and EL296 for Parquet without fitting columns, EL302 if it is
        compressed as a whole, EL240 and EL082 if a package is missing, EL329 for text whose lines
        end with carriage returns alone.
    RAISES (OSError): if a file cannot be opened.
    """
    for path in files:
        if get_format(path) == "parquet":
            require_columns(path, keys)
        else:
            # What is damaged becomes a bad record.
            with open_binary(path) as file, suppress(*DAMAGED):
                if get_format(path) == "txt" and ends_with_returns(file.readline(MOST_BYTES)):
                    raise ValueError(Errors.EL329.format(path=path))


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
