"""`read_steadily`: all of a checkpoint at one moment, while another process may replace it."""

from pathlib import Path
from typing import Callable, Optional, Tuple, TypeVar

from ..errors import Errors
from ..files import find_folder
from .checkpoint_files import CheckpointFiles

Result = TypeVar("Result")

# Writers take longer than readers do, so that one attempt more is mostly enough.
_N_ATTEMPTS = 5
_Identity = Tuple[Optional[Tuple[int, ...]], ...]


def read_steadily(files: CheckpointFiles, read: Callable[[], Result]) -> Result:
    """Read several files of a checkpoint. A run replaces its folders as a whole, so each file
    is one that was written; but the first could be of the old folder, the second of the new one.

    files (CheckpointFiles): the checkpoint.
    read (Callable[[], Result]): reads it by its name. Called again if the files were replaced
        meanwhile, whatever it returned or raised.
    RETURNS (Result): what it returned.
    RAISES (ValueError): EL335 if they are replaced each time; else as `read`.
    """
    for _ in range(_N_ATTEMPTS):
        before = _identify(files)
        try:
            result = read()
        except ValueError:
            if _identify(files) == before:
                raise
        else:
            if _identify(files) == before:
                return result
    raise ValueError(Errors.EL335.format(path=files))


def _identify(files: CheckpointFiles) -> _Identity:
    """RETURNS (_Identity): numbers that are others once a path is of another file or folder."""
    return tuple(map(_identify_path, (files.path, files.weights_path)))


def _identify_path(path: Optional[Path]) -> Optional[Tuple[int, ...]]:
    if path is None:
        return None
    try:
        found = find_folder(path).stat()
    except (OSError, ValueError):
        # It is not there, or has a name that nothing can have.
        return None
    # The number of a folder that was removed may be given to the next one, at another time.
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns
