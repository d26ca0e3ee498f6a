"""The state of a job in its folder: what it is (_job.json), which tasks are done
(_journal.jsonl), and in the end the manifest (_manifest.json) and the rejects (_rejects.jsonl).

A task is done when its shard is in its place and its line in the journal. A killed job leaves
shards without a line, which are written again with the same content, and at most a line that was
not written to its end.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple

from ..errors import Errors
from ..util.atomic import write_file
from ..util.checked_json import read_checked_json, write_checked_json
from ..util.digests import digest
from ..util.showing import show_names, show_value
from .bulk_settings import BulkSettings
from .records import START, Place, Result

# Names that begin with an underscore are no data to those who read whole folders.
JOB, JOURNAL = "_job.json", "_journal.jsonl"
MANIFEST, REJECTS = "_manifest.json", "_rejects.jsonl"
_VERSION = 1


class State(NamedTuple):
    """What is done of a job.

    results (Dict[int, Result]): by the number of their task.
    first (int), start (Place): the first task that is not done, and where it begins.
    """

    results: Dict[int, Result]
    first: int
    start: Place


def describe_job(
    settings: BulkSettings, pipeline: Dict[str, Any], inputs: List[Dict[str, Any]]
) -> Dict[str, Any]:
    """settings (BulkSettings): of the job. pipeline (Dict[str, Any]): see `describe` of the
    pipeline. inputs (List[Dict[str, Any]]): see `describe_inputs`. RETURNS (Dict[str, Any]): what
    has to be the same for a job to be resumed."""
    job = {"settings": asdict(settings), "pipeline": pipeline, "inputs": inputs}
    # As it is when it was read again: JSON has no tuples.
    return json.loads(json.dumps({"version": _VERSION, **job}))


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


def start_job(folder: Path, job: Dict[str, Any]) -> None:
    """folder (Path): of a new job. job (Dict[str, Any]): see `describe_job`. RAISES (OSError): if
    it cannot be written."""
    write_checked_json(folder / JOB, job)


def read_state(folder: Path, job: Dict[str, Any]) -> State:
    """Read what is done, and prepare the journal for what follows.

    folder (Path): of a job that was stopped.
    job (Dict[str, Any]): as it is to go on.
    RETURNS (State): tasks whose shards are there.
    RAISES (ValueError): EL245 if the job is another one, EL246 if its input has changed, EL142 if
        its description is damaged.
    RAISES (OSError): if the journal cannot be written.
    """
    require_same_job(folder, read_checked_json(folder / JOB, required=True), job)
    results = {result.number: result for result in _read_results(folder)}
    first, start = 0, START
    while first in results:
        start = results[first].end
        first += 1
    # Without the line that a killed process began.
    write_file(folder / JOURNAL, b"".join(_to_line(result) for result in results.values()))
    return State(results, first, start)


def require_same_job(folder: Path, before: Dict[str, Any], now: Dict[str, Any]) -> None:
    """folder (Path): of a job. before, now (Dict[str, Any]): see `describe_job`. RAISES
    (ValueError): EL245 if they differ, EL246 if their input does."""
    for part in ("settings", "pipeline"):
        for key, value in now[part].items():
            if before.get(part, {}).get(key) != value:
                old = show_value(before.get(part, {}).get(key))
                shown = {"key": key, "before": old, "now": show_value(value)}
                raise ValueError(Errors.EL245.format(path=folder, **shown))
    old_inputs = {file["path"]: file for file in before["inputs"]}
    new_inputs = {file["path"]: file for file in now["inputs"]}
    names = [n for n in {**old_inputs, **new_inputs} if old_inputs.get(n) != new_inputs.get(n)]
    if names:
        raise ValueError(
            Errors.EL246.format(path=folder, names=show_names(Path(name).name for name in names))
        )


def _to_line(result: Result) -> bytes:
    line = json.dumps(result._asdict()).encode("ascii")
    return b"%s %s\n" % (digest(line).encode("ascii"), line)


def _read_results(folder: Path) -> Iterator[Result]:
    """YIELDS (Result): Of whole lines whose shards are there; the others are computed again."""
    path = folder / JOURNAL
    lines = path.read_bytes().splitlines() if path.exists() else []
    for line in lines:
        known, _, content = line.partition(b" ")
        if known.decode("ascii", "replace") != digest(content):
            continue
        values = json.loads(content)
        result = Result(**{**values, "end": Place(*values["end"])})
        shard = folder / result.shard
        if shard.is_file() and shard.stat().st_size == result.size:
            yield result


def finish_job(folder: Path, job: Dict[str, Any], results: Dict[int, Result]) -> None:
    """Write the rejects and the manifest, and remove what only a resumed job needs.

    folder (Path): of a job, of which all tasks are done.
    job (Dict[str, Any]): see `describe_job`.
    results (Dict[int, Result]): by number.
    RAISES (OSError): if they cannot be written; the job can be resumed then.
    """
    ordered = [results[number] for number in sorted(results)]
    rejects = [json.dumps(reject) for result in ordered for reject in result.rejects]
    if rejects:
        write_file(folder / REJECTS, "".join(f"{line}\n" for line in rejects).encode("ascii"))
    keys = ("shard", "size", "digest", "n_records", "n_rows", "n_tokens")
    shards = [{key: getattr(result, key) for key in keys} for result in ordered]
    totals = {key: sum(shard[key] for shard in shards) for key in keys[3:]}
    content = {**job, **totals, "n_rejects": len(rejects), "shards": shards}
    write_checked_json(folder / MANIFEST, content)
    for name in (JOURNAL, JOB):
        (folder / name).unlink(missing_ok=True)


def read_manifest(folder: Path) -> Dict[str, Any]:
    """folder (Path): of a job. RETURNS (Dict[str, Any]): what `finish_job` wrote. RAISES
    (ValueError): EL247 if the job is not finished, EL142 if the file is damaged, EL100 to EL103 if
    it cannot be read."""
    path = folder / MANIFEST
    if not path.exists():
        raise ValueError(Errors.EL247.format(path=folder))
    return read_checked_json(path, required=True)


def read_first_reject(folder: Path) -> Dict[str, Any]:
    """folder (Path): of a finished job with rejects. RETURNS (Dict[str, Any]): the first."""
    with (folder / REJECTS).open("rb") as file:
        return json.loads(file.readline())
