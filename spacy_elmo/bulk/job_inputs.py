"""What the files of a job were when it began, and whether they are the same when it is resumed."""

import os
from pathlib import Path
from typing import Any, Dict, List

from ..errors import Errors
from ..files import MOST_OF_PIECES, digest_pieces
from ..utils import show_names, show_path

# What tells of the content of a file.
_CONTENT = ("size", "modified", "digest")
Inputs = List[Dict[str, Any]]


def describe_inputs(files: List[Path]) -> Inputs:
    """files (List[Path]): of a job. RETURNS (Inputs): path as given and real path, size and digest
    of each; of one that is too large for a digest of all of it, also the time of its last change in
    ns. In JSON's types. RAISES (OSError): if one cannot be read."""
    return [_describe(path) for path in files]


def _describe(path: Path) -> Dict[str, Any]:
    status = path.stat()
    is_large = status.st_size > MOST_OF_PIECES
    return {
        "path": str(path),
        "resolved": os.path.realpath(path),
        "size": status.st_size,
        "modified": status.st_mtime_ns if is_large else None,
        "digest": digest_pieces(path),
    }


def require_same_inputs(folder: Path, before: Inputs, now: Inputs) -> None:
    """Check that a job would read what it has read, by whatever path.

    folder (Path): of the job.
    before, now (Inputs): see `describe_inputs`.
    RAISES (ValueError): EL246 if a file was changed, is missing or new, or the order is another.
    """
    old, new = ({_resolve(file): file for file in files} for files in (before, now))
    problems = {name: _compare(old.get(name), new.get(name)) for name in {**old, **new}}
    shown = [
        f"{Path(show_path(Path(name))).name}: {what}" for name, what in problems.items() if what
    ]
    if not shown and [*map(_resolve, before)] != [*map(_resolve, now)]:
        shown = ["they come in another order or number"]
    if shown:
        raise ValueError(Errors.EL246.format(path=folder, names=show_names(shown)))


def _resolve(file: Dict[str, Any]) -> str:
    return file["resolved"] if "resolved" in file else os.path.realpath(file["path"])


def _compare(before: Any, now: Any) -> str:
    """RETURNS (str): What has happened to a file; "" if it is the same."""
    if before is None or now is None:
        return "new" if before is None else "missing"
    is_same = all(before.get(key) == now.get(key) for key in _CONTENT)
    return "" if is_same else "changed"


def list_sources(inputs: Inputs) -> List[str]:
    """inputs (Inputs): of a job when it began. RETURNS (List[str]): what its records have as their
    source, file by file."""
    return [show_path(Path(file["path"])) for file in inputs]
