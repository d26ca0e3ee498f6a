"""`CheckpointFiles`: where a checkpoint lies, as a folder or as two files."""

from pathlib import Path
from typing import NamedTuple, Optional, Union

from ..errors import Errors
from ..files import find_folder
from .named_models import BUNDLED_NAME, find_model, list_models

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
        """Find what is meant; nothing is opened.

        path (PathLike): a folder, the first of two files, or the name of an installed model
            ("en_small"). What lies in the file system is taken first.
        weights_path (Optional[PathLike]): the second file.
        RETURNS (CheckpointFiles): the paths.
        RAISES (ValueError): EL189 if the package of a model is broken, EL024 if the bundled
            one is missing.
        """
        if weights_path is not None:
            return cls(Path(path), Path(weights_path))
        name = find_name(path)
        return cls(Path(path)) if name is None else cls.named(name)

    @classmethod
    def named(cls, name: str = BUNDLED_NAME) -> "CheckpointFiles":
        """name (str): of an installed model. RETURNS (CheckpointFiles): its folder.
        RAISES (ValueError): EL188 or EL189 if it is not found, EL024 if the bundled one is
            missing.
        """
        return cls(find_model(name))

    @property
    def folder(self) -> Path:
        """RETURNS (Path): The folder; where it lies if a writer was killed while it replaced
        it."""
        return find_folder(self.path)

    def require(self) -> None:
        """RAISES (ValueError): EL030 if a path does not exist."""
        for path in (self.path, self.weights_path):
            if path is not None and not _exists(path):
                known = ", ".join(list_models())
                raise ValueError(Errors.EL030.format(path=path, known=known))

    def __str__(self) -> str:
        return str(self.path if self.weights_path is None else self.weights_path)


def find_name(path: PathLike) -> Optional[str]:
    """path (PathLike): what a user gave. RETURNS (Optional[str]): The name of an installed
    model; None if it is a path, which it is wherever something lies there."""
    return None if _exists(Path(path)) or str(path) not in list_models() else str(path)


def _exists(path: Path) -> bool:
    try:
        return find_folder(path).exists()
    except (OSError, ValueError):
        # A name that is too long or holds NUL; a folder that may not be looked into.
        return False
