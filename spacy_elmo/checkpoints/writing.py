"""Write the folder of a checkpoint: whole, with digests, or not at all."""

from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Iterator

from ..errors import Errors
from ..util.atomic import atomic_folder, name_previous
from ..util.digests import write_digests


@contextmanager
def checkpoint_folder(folder: Path, is_ours: Callable[[Path], bool]) -> Iterator[Path]:
    """Have a folder written that takes its name at the end, with the digests of its files.

    folder (Path): where.
    is_ours (Callable[[Path], bool]): whether a folder may be replaced. Asked of what has this
        name, and of NAME.previous, which would be deleted.
    YIELDS (Path): an empty folder to write into.
    RAISES (ValueError): EL034 if the folder exists and may not be replaced, EL113 if it
        cannot be written; what was there before is kept then.
    """
    try:
        for path in (folder, name_previous(folder)):
            if path.exists() and not is_ours(path):
                raise ValueError(Errors.EL034.format(path=path))
        with atomic_folder(folder) as beside:
            yield beside
            write_digests(beside)
    except OSError as err:
        raise ValueError(Errors.EL113.format(path=folder, error=err.strerror or err)) from err
