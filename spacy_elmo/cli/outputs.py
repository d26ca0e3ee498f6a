"""Output paths of commands, tried before the work so that its results can be written."""

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, List, Optional

from ..errors import Errors
from ..files import name_previous, read_json_object


def require_output(*paths: Optional[Path]) -> None:
    """Check that files can be written: there is a folder for each, with some room.

    paths (Optional[Path]): the files; None for those that are not wanted.
    RAISES (ValueError): EL145 if one cannot.
    """
    for path in paths:
        if path is not None:
            _require_file(path)


def _require_file(path: Path) -> None:
    if path.is_dir():
        raise ValueError(Errors.EL145.format(path=path, error="it is a folder"))
    if str(path) == "-":
        error = "it is no name of a file; for the standard output, give /dev/stdout"
        raise ValueError(Errors.EL145.format(path=path, error=error))
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file() or not path.exists():
            _try(path.parent)


def require_pipeline_folder(path: Path) -> None:
    """Check that a pipeline can be written, in the place of another one or of nothing.

    path (Path): its folder.
    RAISES (ValueError): EL145 if it cannot, EL150 if there are other files, which would
        be removed, there or in NAME.previous.
    """
    for old in (path, name_previous(path)):
        foreign = _find_foreign(old) if old.is_dir() else [old.name] if old.exists() else []
        if foreign:
            raise ValueError(Errors.EL150.format(path=old, examples=", ".join(foreign[:3])))
    with writing(path):
        path.absolute().parent.mkdir(parents=True, exist_ok=True)
        _try(path.absolute().parent)


def _find_foreign(folder: Path) -> List[str]:
    """RETURNS (List[str]): Names in a folder that are no part of a saved pipeline."""
    names = {path.name for path in folder.iterdir()}
    if not {"meta.json", "config.cfg"} <= names:
        return sorted(names)
    meta = read_json_object(folder / "meta.json")
    # Those that are disabled are saved, too.
    pipes = [*(meta.get("pipeline") or []), *(meta.get("disabled") or [])]
    common = {"meta.json", "config.cfg", "tokenizer", "vocab"}
    # A component writes a folder of its name, or a file such as sentencizer.json.
    return sorted(n for n in names - common if n not in pipes and Path(n).stem not in pipes)


def _try(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(4096))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """path (Path): what is written. RAISES (ValueError): EL145 for an error of the system."""
    try:
        yield
    except OSError as err:
        raise ValueError(Errors.EL145.format(path=path, error=err)) from err
