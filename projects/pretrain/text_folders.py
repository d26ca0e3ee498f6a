"""The folder of a corpus: text/ and held-out text, written as a whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from spacy_elmo.files import atomic_folder

_NAMES = ("text", "heldout")


@contextmanager
def text_folder(output: Path) -> Iterator[Path]:
    """Write a folder with text/, heldout/ and others that begin like these. It replaces an
    existing folder: older text could be held out now.

    YIELDS (Path): an empty folder to write to.
    RAISES (typer.BadParameter): if OUTPUT holds something else.
    """
    names = sorted(path.name for path in output.iterdir()) if output.is_dir() else []
    foreign = [name for name in names if not name.startswith(_NAMES)]
    if foreign:
        raise typer.BadParameter(
            f"{output} holds more than text ({', '.join(foreign[:3])}), which would be removed. "
            "Give another folder"
        )
    with atomic_folder(output) as folder:
        yield folder
