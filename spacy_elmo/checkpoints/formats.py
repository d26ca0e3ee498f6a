"""Find a checkpoint by its path or name, and read any known format."""

import os
from importlib.metadata import entry_points
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.weights import load_weights, usual_numbers
from ..errors import Errors
from ..files import find_folder, read_file, write_file
from ..registry import checkpoint_readers, models
from ..utils import show_reason
from .tensors import PathLike, StateDict

BUNDLED_NAME = "en_small"
# The small English model, see docs/data.md and its meta.json.
BUNDLED = Path(str(package_files("spacy_elmo"))) / "data" / BUNDLED_NAME
_MODELS_GROUP = "spacy_elmo_models"


class CheckpointFiles(NamedTuple):
    """A folder, or a file that describes the shape (`path`) and one that holds the weights."""

    path: Path
    weights_path: Optional[Path] = None

    @classmethod
    def of(cls, path: PathLike, weights_path: Optional[PathLike] = None) -> "CheckpointFiles":
        """Find a checkpoint by a folder, two files, or the name of an installed model ("en_small");
        a path that exists takes precedence over a name. Nothing is opened."""
        path = os.fsdecode(path)
        if weights_path is not None:
            return cls(Path(path), Path(os.fsdecode(weights_path)))
        name = find_name(path)
        return cls(Path(path)) if name is None else cls.named(name)

    @classmethod
    def named(cls, name: str = BUNDLED_NAME) -> "CheckpointFiles":
        """Find the folder of an installed model."""
        return cls(find_model(name))

    @property
    def folder(self) -> Path:
        """The folder; NAME.previous if a writer was killed while it replaced the folder."""
        return find_folder(self.path)

    def require(self) -> None:
        """RAISES (ValueError): EL030 if a path does not exist."""
        for path in (self.path, self.weights_path):
            if path is not None and not _exists(path):
                raise ValueError(Errors.EL030.format(path=path, known=", ".join(list_models())))

    def __str__(self) -> str:
        return str(self.path if self.weights_path is None else self.weights_path)


def find_name(path: PathLike) -> Optional[str]:
    """Find the name of an installed model that a user's path stands for; None if something exists
    at that path, or no model has the name."""
    return None if _exists(Path(path)) or str(path) not in list_models() else str(path)


def _exists(path: Path) -> bool:
    try:
        return find_folder(path).exists()
    except (OSError, ValueError):
        # The name is too long or contains NUL, or a folder may not be read.
        return False


def get_en_small() -> Path:
    """Find the folder of the bundled model."""
    return BUNDLED


def is_bundled(weights: str) -> bool:
    """Whether weights, a folder or a name ("": the bundled model), are the bundled model."""
    return weights in ("", BUNDLED_NAME) or Path(weights).resolve() == BUNDLED.resolve()


def list_models() -> List[str]:
    """List the names of the installed models. No package is imported."""
    return sorted({entry.name for entry in entry_points(group=_MODELS_GROUP)})


def find_model(name: str) -> Path:
    """Find the folder of a model. RAISES (ValueError): EL030 if no installed package declares it,
    EL189 if its package is broken or several declare it."""
    # The same installation may be listed twice.
    group = entry_points(group=_MODELS_GROUP)
    found = sorted({entry.value for entry in group if entry.name == name})
    if not found:
        raise ValueError(Errors.EL030.format(path=name, known=", ".join(list_models())))
    try:
        if len(found) > 1:
            raise ValueError(f"several packages declare it: {', '.join(found)}")
        path = Path(models.get(name)())
        if not path.is_dir():
            raise FileNotFoundError(f"there is no folder '{path}'")
        return path
    except Exception as err:  # another package's code may raise anything
        raise ValueError(Errors.EL189.format(name=name, problem=show_reason(err))) from err


class SoftmaxWeights(NamedTuple):
    """The stored softmax of a language model."""

    kind: str  # registered name of the softmax, such as "full"
    settings: Dict[str, Any]  # its further arguments
    state: StateDict
    words: List[str]  # the vocabulary, in the order of the rows


class CheckpointReader(NamedTuple):
    """How to read one format. All raise ValueError with a message that names the file."""

    # Whether the files are of this format, by their names alone.
    matches: Callable[[CheckpointFiles], bool]
    # The shape, compared with that of the stored weights: the file limits the biLM's memory.
    read_config: Callable[[CheckpointFiles], BiLMConfig]
    # The weights by the names of `BiLM.state_dict()`, float32.
    read_state: Callable[[CheckpointFiles, BiLMConfig], StateDict]
    # None if the checkpoint has no softmax.
    read_softmax: Callable[[CheckpointFiles], Optional[SoftmaxWeights]]


def find_reader(files: CheckpointFiles) -> CheckpointReader:
    """Find the first registered reader that knows the files. RAISES (ValueError): EL030 if the path
    does not exist, EL031 if no reader matches."""
    files.require()
    for _, reader in sorted(checkpoint_readers.get_all().items()):
        if reader.matches(files):
            return reader
    raise ValueError(Errors.EL031.format(path=files))


@usual_numbers()
def read_bilm(files: CheckpointFiles) -> BiLM:
    """Make a biLM from a checkpoint of any known format. RAISES (ValueError): EL020 and EL021 if
    the weights do not fit the shape, EL030 to EL103 and EL100 to EL106 if they cannot be read."""
    reader = find_reader(files)
    config = reader.read_config(files)
    bilm = BiLM(config)
    load_weights(bilm, reader.read_state(files, config), str(files))
    return bilm


def read_with_softmax(files: CheckpointFiles) -> Tuple[BiLM, Optional[SoftmaxWeights]]:
    """As `read_bilm`, with the softmax; None if the checkpoint has none."""
    return read_bilm(files), find_reader(files).read_softmax(files)


def fill_bilm(bilm: BiLM, files: CheckpointFiles, mismatch: str) -> None:
    """Fill a biLM from a checkpoint of any known format; it is untouched if anything is wrong. For
    another shape, `mismatch` is the message, with places for {path} and {differences}."""
    reader = find_reader(files)
    config = reader.read_config(files)
    differences = bilm.config.differences(config)
    if differences:
        raise ValueError(mismatch.format(path=files.path, differences="; ".join(differences)))
    load_weights(bilm, reader.read_state(files, config), str(files))


def read_words(path: Path) -> List[str]:
    """Read a word from each line of a file in UTF-8, with or without a mark (BOM). RAISES
    (ValueError): EL100 and EL103 if it cannot be read."""
    try:
        lines = read_file(path).decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as err:
        raise ValueError(Errors.EL103.format(path=path, error=err)) from err
    return [word for line in lines if (word := line.rstrip("\r"))]


def write_words(path: Path, words: Sequence[str]) -> None:
    """Write a file for `read_words`."""
    write_file(path, "".join(f"{word}\n" for word in words).encode("utf-8"))
