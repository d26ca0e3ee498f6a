"""Results of experiments, as JSON files that say how they came about."""

import json
import platform
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, Dict

from ..errors import Errors
from ..files import JSON_BYTES, read_checked_json, read_file, read_json, write_checked_json

# Of a run or an experiment: what its file has.
Result = Dict[str, Any]


def write_result(path: Path, experiment: str, title: str, content: Dict[str, Any]) -> None:
    """Write what `spacy elmo report` reads.

    path (Path): file to write.
    experiment (str): which it is.
    title (str): what the data is called.
    content (Dict[str, Any]): the result.
    RAISES (OSError): if it cannot be written.
    """
    write_checked_json(path, {"experiment": experiment, "title": title, **get_origin(), **content})


def get_origin() -> Dict[str, Any]:
    """RETURNS (Dict[str, Any]): "date" and "versions" of what a result depends on."""
    versions = {name: version(name) for name in ("spacy-elmo", "spacy", "thinc", "torch")}
    return {
        "date": date.today().isoformat(),
        "versions": {**versions, "python": platform.python_version()},
    }


def get_effort(start: float, weights_hash: bytes) -> Dict[str, Any]:
    """start (float): of the work, by `time.perf_counter`. weights_hash (bytes): from
    `Embedder.hash_weights`. RETURNS (Dict[str, Any]): "seconds" since, and "biLM"."""
    seconds = round(time.perf_counter() - start, 3)
    return {"seconds": seconds, "biLM": weights_hash.hex()[:16]}


def read_results(folder: Path) -> Dict[Path, Result]:
    """Read what `write_result` wrote; other JSON files are skipped, and so are the
    temporary folders of unfinished runs (NAME.partial).

    folder (Path): with results, however deep.
    RETURNS (Dict[Path, Dict[str, Any]]): by file, in the order of their names.
    RAISES (ValueError): EL047 if there is nothing, EL100 to EL103 or EL142 if a file of ours
        cannot be read or is not what was written.
    """
    results = {}
    for path in sorted(folder.rglob("*.json")):
        if any(parent.suffix == ".partial" for parent in path.relative_to(folder).parents):
            continue
        try:
            is_ours = _is_ours(read_json(path))
        except ValueError:
            if _is_of_python(path):
                continue
            raise
        if is_ours:
            content = read_checked_json(path)
            if "experiment" in content:
                results[path] = content
    if not results:
        raise ValueError(Errors.EL047.format(path=folder))
    return results


def _is_ours(content: Any) -> bool:
    # Other programs use this key, too; our digests have 32 characters.
    return isinstance(content, dict) and (
        len(str(content.get("digest"))) == 32 or "experiment" in content
    )


def _is_of_python(path: Path) -> bool:
    """Whether a file that is no JSON is what Python's `json.dump` wrote of other things: it writes
    NaN for a number."""
    try:
        return not _is_ours(json.loads(read_file(path, JSON_BYTES)))
    except (ValueError, RecursionError):
        return False
