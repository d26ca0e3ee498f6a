"""Results of experiments, as JSON files that say how they came about."""

import platform
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, Dict, List

import srsly

from .errors import Errors
from .util.atomic import write_json


def write_result(path: Path, experiment: str, title: str, content: Dict[str, Any]) -> None:
    """Write what `spacy elmo report` reads.

    path (Path): file to write.
    experiment (str): which it is.
    title (str): what the data is called.
    content (Dict[str, Any]): the result.
    """
    write_json(path, {"experiment": experiment, "title": title, **get_origin(), **content})


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


def read_results(folder: Path) -> List[Dict[str, Any]]:
    """folder (Path): with results, however deep. RETURNS (List[Dict[str, Any]]): what
    `write_result` wrote, in the order of the files' names. RAISES (ValueError): EL047 if
    there is nothing."""
    found = []
    for path in sorted(folder.rglob("*.json")):
        content = srsly.read_json(path)
        if isinstance(content, dict) and "experiment" in content:
            found.append(content)
    if not found:
        raise ValueError(Errors.EL047.format(path=folder))
    return found
