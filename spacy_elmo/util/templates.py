"""`read_template`: the configs inside the package."""

from importlib.resources import files as package_files
from pathlib import Path

from confection import Config

_FOLDER = Path(str(package_files("spacy_elmo"))) / "configs"


def read_template(name: str) -> Config:
    """name (str): of a file in `configs/`, without its ending. RETURNS (Config): its content,
    not interpolated."""
    return Config().from_disk(_FOLDER / f"{name}.cfg", interpolate=False)
