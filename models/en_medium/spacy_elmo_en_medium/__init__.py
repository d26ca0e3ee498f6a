"""The model en_medium of spacy-elmo."""

from pathlib import Path

__version__ = "0.2.0"


def get_path() -> Path:
    """RETURNS (Path): Folder with the weights, their softmax and their description."""
    return Path(__file__).parent / "model"
