"""`python -m spacy elmo convert`: other formats -> our folder."""

from pathlib import Path
from typing import Optional

import typer

from .common import exit_on_error
from .console import format_table
from .options import QUIET


def convert(
    source: Path = typer.Argument(..., help="Folder with weights, a model's name, or options.json"),
    output: Path = typer.Argument(..., help="Folder to write", file_okay=False),
    weights: Optional[Path] = typer.Option(
        None, help="HDF5 file, if SOURCE is options.json", show_default="none"
    ),
    half: bool = typer.Option(False, "--half", help="Store 16 bits a number, not 32"),
    round_softmax: bool = typer.Option(
        False, "--round-softmax", help="Store the softmax in 8 bits a number, a scale for each word"
    ),
    softmax: bool = typer.Option(True, help="Keep the softmax, if there is one"),
    meta: Optional[Path] = typer.Option(
        None, help="JSON file to add to meta.json", show_default="none"
    ),
    force: bool = typer.Option(False, "--force", "-F", help="Replace weights in OUTPUT"),
    quiet: bool = QUIET,
) -> None:
    """Convert weights into a folder that loads without h5py."""
    import torch

    from ..checkpoints.checkpoint_files import CheckpointFiles
    from ..checkpoints.formats import find_reader, read_bilm
    from ..checkpoints.native import matches_native, read_meta, write_native
    from ..errors import Errors
    from ..util.reading import read_json_object

    with exit_on_error(quiet) as console:
        # Other folders are never replaced.
        if matches_native(CheckpointFiles(output)) and not force:
            raise ValueError(Errors.EL164.format(path=output))
        files = CheckpointFiles.of(source, weights)
        reader = find_reader(files)
        # First what is read at once: weights take a while.
        given = read_json_object(meta) if meta else {}
        notes = {**(read_meta(files.path) or {"source": source.name}), **given}
        bilm = read_bilm(files)
        stored = reader.read_softmax(files) if softmax else None
        dtype = torch.float16 if half else torch.float32
        write_native(
            bilm, output, softmax=stored, meta=notes, dtype=dtype, round_softmax=round_softmax
        )
        rows = [(key.replace("_", " "), _format(value)) for key, value in vars(bilm.config).items()]
        console.tell(format_table(rows, ("shape of the biLM", "")))
        console.finish(output)


def _format(value: object) -> str:
    # Pairs of a width and a number of filters.
    return " ".join(f"{w}:{n}" for w, n in value) if isinstance(value, tuple) else str(value)
