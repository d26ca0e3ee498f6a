"""`python -m spacy elmo export`: our folder -> other formats."""

from enum import Enum
from pathlib import Path

import typer

from .common import exit_on_error
from .options import QUIET


class Format(str, Enum):
    """What can be written."""

    allennlp = "allennlp"


def export(
    checkpoint: Path = typer.Argument(..., help="Folder with weights, or a model's name"),
    output: Path = typer.Argument(..., help="Folder to write", file_okay=False),
    format: Format = typer.Option(Format.allennlp, help="Format to write"),
    softmax: bool = typer.Option(True, help="Write the softmax too, if there is one"),
    quiet: bool = QUIET,
) -> None:
    """Write weights as options.json and HDF5, for any reader of ELMo weights."""
    from ..checkpoints.allennlp import write_allennlp
    from ..checkpoints.formats import CheckpointFiles, read_bilm, read_with_softmax

    with exit_on_error(quiet) as console:
        files = CheckpointFiles.of(checkpoint)
        bilm, stored = read_with_softmax(files) if softmax else (read_bilm(files), None)
        write_allennlp(bilm, output, stored)
        summary = "with its softmax" if stored else "without a softmax"
        console.finish(output, summary=summary)
