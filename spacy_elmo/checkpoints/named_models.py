"""biLMs by name: the bundled one, and those of packages that declare the entry point group
"spacy_elmo_models"."""

from importlib.metadata import entry_points
from importlib.resources import files as package_files
from pathlib import Path
from typing import List

from ..errors import Errors
from ..registry import models
from ..utils import show_reason

_GROUP = "spacy_elmo_models"
BUNDLED_NAME = "en_small"
# The small English model, see docs/data.md and its meta.json.
BUNDLED = Path(str(package_files("spacy_elmo"))) / "data" / BUNDLED_NAME


def get_en_small() -> Path:
    """RETURNS (Path): Folder of the bundled model.
    RAISES (ValueError): EL024 if this installation has none.
    """
    if not BUNDLED.exists():
        raise ValueError(Errors.EL024.format(path=BUNDLED))
    return BUNDLED


def is_bundled(weights: str) -> bool:
    """weights (str): a folder or a name; "" for the bundled model. RETURNS (bool): Whether it is
    the bundled model, whatever it is called."""
    return weights in ("", BUNDLED_NAME) or Path(weights).resolve() == BUNDLED.resolve()


def list_models() -> List[str]:
    """RETURNS (List[str]): Names that are known, without importing what declares them."""
    return sorted({entry.name for entry in entry_points(group=_GROUP)})


def find_model(name: str) -> Path:
    """name (str): of a model. RETURNS (Path): its folder.
    RAISES (ValueError): EL188 if no installed package has it, EL189 if that package is broken,
        EL323 if several have it, EL024 if the bundled one is missing.
    """
    if name == BUNDLED_NAME:
        return get_en_small()
    # An installation may be listed twice, as the same.
    found = sorted({entry.value for entry in entry_points(group=_GROUP) if entry.name == name})
    if not found:
        raise ValueError(Errors.EL188.format(name=name, known=", ".join(list_models())))
    if len(found) > 1:
        raise ValueError(Errors.EL323.format(name=name, found=", ".join(found)))
    try:
        # Another package's code.
        path = Path(models.get(name)())
        if not path.is_dir():
            raise FileNotFoundError(f"there is no folder '{path}'")
        return path
    except Exception as err:
        raise ValueError(Errors.EL189.format(name=name, problem=show_reason(err))) from err
