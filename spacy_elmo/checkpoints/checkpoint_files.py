"""`CheckpointFiles`: where a checkpoint lies, as a folder or as two files."""

from pathlib import Path
from typing import NamedTuple, Optional, Union

from ..errors import Errors
from ..util.atomic import find_folder

PathLike = Union[str, Path]


class CheckpointFiles(NamedTuple):
    """A folder, or a file that describes the shape and one that holds the weights.

    path (Path): the folder, or the first file.
    weights_path (Optional[Path]): the second file; None for a folder.
    """

    path: Path
    weights_path: Optional[Path] = None

    @classmethod
    def of(cls, path: PathLike, weights_path: Optional[PathLike] = None) -> "CheckpointFiles":
        """Make paths of strings; nothing is opened."""
        return cls(Path(path), None if weights_path is None else Path(weights_path))

    @property
    def folder(self) -> Path:
        """RETURNS (Path): The folder; where it lies if a writer was killed while it replaced
        it."""
        return find_folder(self.path)

    def require(self) -> None:
        """RAISES (ValueError): EL030 if a path does not exist."""
        for path in (self.path, self.weights_path):
            if path is not None and not _exists(path):
                raise ValueError(Errors.EL030.format(path=path))

    def __str__(self) -> str:
        return str(self.path if self.weights_path is None else self.weights_path)


def _exists(path: Path) -> bool:
    try:
        return find_folder(path).exists()
    except (OSError, ValueError):
        # A name that is too long or holds NUL; a folder that may not be looked into.
        return False
