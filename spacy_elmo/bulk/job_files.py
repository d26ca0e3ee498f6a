"""What a job is (_job.json), and what it was in the end (_manifest.json), in its folder."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, List

from ..errors import Errors
from ..files import read_checked_json, write_checked_json
from ..utils import show_names, show_value
from .bulk_settings import BulkSettings
from .job_inputs import require_same_inputs
from .journal import JOURNAL, State, is_file_name, is_whole
from .records import Result

# Names that begin with an underscore are no text, see `find_inputs`.
JOB, MANIFEST = "_job.json", "_manifest.json"
_VERSION = 1
# Of the shard of a result.
_COUNTS = ("n_records", "n_rows", "n_tokens")
_SHARD = ("shard", "size", "digest", *_COUNTS)
# They say where the pipeline lies; what it is, its description does.
_PLACES = ("pipeline", "weights")


def describe_job(
    settings: BulkSettings, pipeline: Dict[str, Any], inputs: List[Dict[str, Any]]
) -> Dict[str, Any]:
    """settings (BulkSettings): of the job. pipeline (Dict[str, Any]): see `describe` of the
    pipeline. inputs (List[Dict[str, Any]]): see `describe_inputs`. RETURNS (Dict[str, Any]): what
    has to be the same for a job to be resumed."""
    job = {"settings": asdict(settings), "pipeline": pipeline, "inputs": inputs}
    # As it is when it was read again: JSON has no tuples.
    return json.loads(json.dumps({"version": _VERSION, **job}))


def is_job_folder(folder: Path) -> bool:
    """folder (Path): any. RETURNS (bool): Whether a job writes there, or has done so."""
    return any((folder / name).is_file() for name in (JOB, MANIFEST))


def start_job(folder: Path, job: Dict[str, Any]) -> None:
    """folder (Path): of a new job. job (Dict[str, Any]): see `describe_job`. RAISES (OSError): if
    it cannot be written."""
    write_checked_json(folder / JOB, job)


def read_job(folder: Path) -> Dict[str, Any]:
    """folder (Path): of a job, finished or not. RETURNS (Dict[str, Any]): see `describe_job`.
    RAISES (ValueError): EL142 if the file is damaged, EL100 to EL103 if it cannot be read, EL299
    if it is no such file."""
    name = MANIFEST if (folder / MANIFEST).exists() else JOB
    job = read_checked_json(folder / name, required=True)
    _require_job(folder / name, job)
    return job


def _require_job(path: Path, job: Dict[str, Any]) -> None:
    """RAISES (ValueError): EL299 if it has not the parts of a job."""
    has_parts = all(isinstance(job.get(part), dict) for part in ("settings", "pipeline"))
    inputs = job.get("inputs")
    if not has_parts or not isinstance(inputs, list) or not all(map(_is_input, inputs)):
        raise ValueError(Errors.EL299.format(path=path))


def _is_input(file: Any) -> bool:
    return isinstance(file, dict) and all(
        _is_path(file.get(key, file.get("path"))) for key in ("path", "resolved")
    )


def _is_path(path: Any) -> bool:
    if not isinstance(path, str) or "\0" in path:
        return False
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def require_same_job(folder: Path, before: Dict[str, Any], now: Dict[str, Any]) -> None:
    """folder (Path): of a job. before, now (Dict[str, Any]): see `describe_job`. RAISES
    (ValueError): EL245 if they differ, EL246 if their input does."""
    for part in ("settings", "pipeline"):
        # Jobs of earlier versions lack some keys.
        for key in sorted({*now[part]} & {*before[part]}):
            old, value = before[part][key], now[part][key]
            if old != value and not (part == "settings" and key in _PLACES):
                shown = {"key": key, "before": show_value(old), "now": show_value(value)}
                raise ValueError(Errors.EL245.format(path=folder, **shown))
    require_same_inputs(folder, before["inputs"], now["inputs"])


def require_shards(folder: Path, manifest: Dict[str, Any]) -> None:
    """folder (Path): of a finished job. manifest (Dict[str, Any]): its. RAISES (ValueError): EL308
    if a shard is gone, or is not what was written; EL103 if one cannot be read."""
    lost = [
        shard["shard"]
        for shard in manifest["shards"]
        if not is_whole(folder / shard["shard"], shard["size"], shard["digest"])
    ]
    if lost:
        raise ValueError(Errors.EL308.format(path=folder, names=show_names(lost)))


def finish_job(folder: Path, job: Dict[str, Any], state: State) -> None:
    """Write the manifest, and remove what only a resumed job needs.

    folder (Path): of a job, of which all tasks are done, and the rejects are written.
    job (Dict[str, Any]): see `describe_job`.
    state (State): of the job.
    RAISES (OSError): if it cannot be written; the job can be resumed then.
    """
    results = [state.results[number] for number in sorted(state.results)]
    shards = [{key: getattr(result, key) for key in _SHARD} for result in results]
    totals = {key: sum(getattr(result, key) for result in results) for key in _COUNTS}
    content = {**job, **totals, "n_rejects": state.n_rejects, "shards": shards}
    write_checked_json(folder / MANIFEST, content)
    for name in (JOURNAL, JOB):
        (folder / name).unlink(missing_ok=True)


def read_manifest(folder: Path) -> Dict[str, Any]:
    """folder (Path): of a job. RETURNS (Dict[str, Any]): what `finish_job` wrote. RAISES
    (ValueError): EL247 if the job is not finished, EL142 if the file is damaged, EL100 to EL103 if
    it cannot be read, EL299 if it is no manifest."""
    path = folder / MANIFEST
    if not path.exists():
        raise ValueError(Errors.EL247.format(path=folder))
    manifest = read_job(folder)
    shards = manifest.get("shards")
    has_counts = all(type(manifest.get(key)) is int for key in (*_COUNTS, "n_rejects"))
    if not has_counts or not isinstance(shards, list) or not all(map(_is_shard, shards)):
        raise ValueError(Errors.EL299.format(path=path))
    return manifest


def _is_shard(shard: Any) -> bool:
    types = Result.__annotations__
    if not isinstance(shard, dict) or any(type(shard.get(key)) is not types[key] for key in _SHARD):
        return False
    return is_file_name(shard["shard"])
