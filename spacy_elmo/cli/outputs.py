"""What commands write: places are tried before the work, so that it is not lost for them."""

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, Optional

from ..errors import Errors


def require_output(path: Optional[Path]) -> None:
    """Check that a file can be written: there is a folder for it, with some room.

    path (Optional[Path]): the file; None if none is wanted.
    RAISES (ValueError): EL145 if it cannot.
    """
    if path is None:
        return
    if path.is_dir():
        raise ValueError(Errors.EL145.format(path=path, error="it is a folder"))
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file() or not path.exists():
            _try(path.parent)


def require_folder(path: Path) -> None:
    """Check that a folder can be written into; it is made if it is not there.

    RAISES (ValueError): EL145 if it cannot.
    """
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
        _try(path)


def _try(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(4096))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """path (Path): what is written. RAISES (ValueError): EL145 if the system says no."""
    try:
        yield
    except OSError as err:
        raise ValueError(Errors.EL145.format(path=path, error=err)) from err
