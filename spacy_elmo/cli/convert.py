"""`python -m spacy elmo convert`: other formats -> our folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Optional

import typer

from .common import exit_on_error
from .console import format_table
from .option_conflicts import list_idle_of_convert, require_no_conflicts
from .options import QUIET

if TYPE_CHECKING:
    from ..checkpoints.formats import CheckpointFiles


def convert(
    ctx: typer.Context,
    source: Path = typer.Argument(..., help="Folder with weights, a model's name, or options.json"),
    output: Path = typer.Argument(..., help="Folder to write", file_okay=False),
    weights: Optional[Path] = typer.Option(
        None, help="HDF5 file, if SOURCE is options.json", show_default="none"
    ),
    half: bool = typer.Option(False, "--half", help="Store 16 bits a number, not 32"),
    round_weights: bool = typer.Option(
        False, "--round-weights", help="Store the biLM in 8 bits a number, a scale for each row"
    ),
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

    from ..checkpoints.formats import CheckpointFiles, read_bilm, read_with_softmax
    from ..checkpoints.native import find_foreign, is_native, write_native
    from ..errors import Errors
    from ..files import read_json_object
    from ..utils import show_names

    with exit_on_error(quiet) as console:
        require_no_conflicts(ctx, list_idle_of_convert(ctx.params))
        # Other folders are never replaced.
        if is_native(output):
            if not force:
                raise ValueError(Errors.EL164.format(path=output))
            if foreign := find_foreign(output):
                raise ValueError(Errors.EL307.format(path=output, names=show_names(foreign)))
        files = CheckpointFiles.of(source, weights)
        # First what is read at once: weights take a while.
        given = read_json_object(meta) if meta else {}
        notes = {**_read_notes(files), **given}
        bilm, stored = read_with_softmax(files) if softmax else (read_bilm(files), None)
        dtype = torch.float16 if half else torch.float32
        write_native(
            bilm,
            output,
            softmax=stored,
            meta=notes,
            dtype=dtype,
            round_weights=round_weights,
            round_softmax=round_softmax,
        )
        rows = [(key.replace("_", " "), _format(value)) for key, value in vars(bilm.config).items()]
        console.tell(format_table(rows, ("shape of the biLM", "")))
        console.finish(output)


def _read_notes(files: "CheckpointFiles") -> Dict[str, Any]:
    """RETURNS (Dict[str, Any]): What there is to say of the weights."""
    from ..checkpoints.native import read_meta
    from ..checkpoints.saved_pipeline import matches_pipeline

    meta = read_meta(files.path)
    if matches_pipeline(files):
        # Most of what a pipeline says is not of its weights.
        return {"source": files.path.name, **{key: meta[key] for key in ("lang",) if key in meta}}
    return meta or {"source": files.path.name}


def _format(value: object) -> str:
    # Pairs of a width and a number of filters.
    return " ".join(f"{w}:{n}" for w, n in value) if isinstance(value, tuple) else str(value)
