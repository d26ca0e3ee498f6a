"""Write the folder of a checkpoint atomically, with digests."""

from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Iterator

from ..errors import Errors
from ..files import atomic_folder, name_previous, write_digests


@contextmanager
def checkpoint_folder(folder: Path, is_ours: Callable[[Path], bool]) -> Iterator[Path]:
    """Write a folder atomically, with the digests of its files.

    folder (Path): where.
    is_ours (Callable[[Path], bool]): whether a folder may be replaced. Called with the folder,
        and with NAME.previous, which would be deleted.
    YIELDS (Path): an empty temporary folder to write to.
    RAISES (ValueError): EL034 if the folder exists and may not be replaced, EL113 if it
        cannot be written; the old folder is kept then.
    """
    try:
        for path in (folder, name_previous(folder)):
            if path.exists() and not is_ours(path):
                raise ValueError(Errors.EL034.format(path=path))
        with atomic_folder(folder) as temporary:
            yield temporary
            write_digests(temporary)
    except OSError as err:
        raise ValueError(Errors.EL113.format(path=folder, error=err.strerror or err)) from err
