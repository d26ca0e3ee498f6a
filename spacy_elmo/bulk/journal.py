"""Which tasks of a job are done (_journal.jsonl), and what they have set aside (_rejects.jsonl).

A task is done when its shard is in its place and its line in the journal. A killed job leaves
shards without a line, which are written again with the same content, and at most a line that was
not written to its end. The rejects stay in the journal: of a bad corpus, they fill the memory.
"""

import json
import os
from pathlib import Path
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

from ..files import atomic_file, digest, digest_file
from .records import START, Place, Result

JOURNAL, REJECTS = "_journal.jsonl", "_rejects.jsonl"


class State(NamedTuple):
    """What is done of a job.

    results (Dict[int, Result]): by the number of their task, without their rejects.
    n_rejects (int): of all of them.
    first (int), start (Place): the first task that is not done, and where it begins.
    """

    results: Dict[int, Result]
    n_rejects: int = 0
    first: int = 0
    start: Place = START

    def add(self, result: Result) -> "State":
        """result (Result): of another task. RETURNS (State): with it, and without its rejects."""
        self.results[result.number] = result._replace(rejects=[])
        return self._replace(n_rejects=self.n_rejects + len(result.rejects))


class Journal:
    """The journal of a job, open for appending.

    folder (Path): of the job.
    """

    def __init__(self, folder: Path) -> None:
        self._file = (folder / JOURNAL).open("ab")

    def add(self, result: Result) -> None:
        """result (Result): of a task whose shard is in its place. RAISES (OSError): if it cannot
        be written."""
        self._file.write(_to_line(result))
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_state(folder: Path) -> State:
    """Read what is done, and prepare the journal for what follows.

    folder (Path): of a job that was stopped.
    RETURNS (State): tasks whose shards are there, and are what was written.
    RAISES (OSError): if the journal cannot be read or written.
    RAISES (ValueError): EL103 if a shard cannot be read.
    """
    state = State({})
    # Without the line that a killed process began.
    with atomic_file(folder / JOURNAL) as temporary, temporary.open("wb") as file:
        for _, result in _read_results(folder):
            shard = folder / result.shard
            if result.number not in state.results and is_whole(shard, result.size, result.digest):
                file.write(_to_line(result))
                state = state.add(result)
    first, start = 0, START
    while first in state.results:
        start = state.results[first].end
        first += 1
    return state._replace(first=first, start=start)


def is_whole(shard: Path, size: int, known: str) -> bool:
    """shard (Path): a file. size (int), known (str): what it was, in bytes, and its digest. RETURNS
    (bool): Whether it is there and the same. RAISES (ValueError): EL103 if it cannot be read."""
    is_there = shard.is_file() and shard.stat().st_size == size
    return is_there and digest_file(shard) == known


def write_rejects(folder: Path) -> Optional[str]:
    """Write what was set aside, in the order of the input.

    folder (Path): of a job, of which all tasks are done.
    RETURNS (Optional[str]): the first reason, if there is any.
    RAISES (OSError): if it cannot be written.
    """
    # Where the tasks are that have any: results come in any order.
    places = {result.number: place for place, result in _read_results(folder) if result.rejects}
    if not places:
        (folder / REJECTS).unlink(missing_ok=True)
        return None
    with (
        (folder / JOURNAL).open("rb") as journal,
        atomic_file(folder / REJECTS) as temporary,
        temporary.open("wb") as file,
    ):
        for number in sorted(places):
            journal.seek(places[number])
            for reject in json.loads(journal.readline().partition(b" ")[2])["rejects"]:
                file.write(b"%s\n" % json.dumps(reject).encode("ascii"))
    return read_first_reject(folder)["reason"]


def read_first_reject(folder: Path) -> Dict[str, Any]:
    """folder (Path): of a job with rejects. RETURNS (Dict[str, Any]): the first."""
    with (folder / REJECTS).open("rb") as file:
        return json.loads(file.readline())


def _to_line(result: Result) -> bytes:
    line = json.dumps(result._asdict()).encode("ascii")
    return b"%s %s\n" % (digest(line).encode("ascii"), line)


def _read_results(folder: Path) -> Iterator[Tuple[int, Result]]:
    """YIELDS (Tuple[int, Result]): Of whole lines, with the byte that they begin with. What is in
    no such line is computed again."""
    path, place = folder / JOURNAL, 0
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            known, _, content = line.rstrip(b"\n").partition(b" ")
            result = _parse(content) if known == digest(content).encode("ascii") else None
            if result is not None:
                yield place, result
            place += len(line)


def _parse(content: bytes) -> Optional[Result]:
    """RETURNS (Optional[Result]): None for what we have not written."""
    try:
        values = json.loads(content)
        result = Result(**{**values, "end": Place(*values["end"])})
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    names = ("number", "size", "n_records", "n_rows", "n_tokens")
    numbers = [*(getattr(result, name) for name in names), *result.end]
    are_numbers = all(type(number) is int and number >= 0 for number in numbers)
    has_rejects = isinstance(result.rejects, list) and all(map(_is_reject, result.rejects))
    is_result = are_numbers and is_file_name(result.shard) and has_rejects
    return result if is_result and isinstance(result.digest, str) else None


def is_file_name(name: Any) -> bool:
    """name (Any): what a file says. RETURNS (bool): Whether it can name a file beside it."""
    return isinstance(name, str) and name == Path(name).name and name.isprintable()


def _is_reject(reject: Any) -> bool:
    return isinstance(reject, dict) and isinstance(reject.get("reason"), str)
