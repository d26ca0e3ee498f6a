"""`python -m spacy elmo convert`: weights of any format -> our folder, or AllenNLP's files."""

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Optional

import typer

from .common import exit_on_error, format_table
from .options import QUIET, optional

if TYPE_CHECKING:
    from ..checkpoints.formats import CheckpointFiles


class Format(str, Enum):
    """What can be written."""

    native = "native"
    allennlp = "allennlp"


def convert(
    source: Path = typer.Argument(..., help="Folder with weights, a model's name, or options.json"),
    output: Path = typer.Argument(..., help="Folder to write", file_okay=False),
    weights: Optional[Path] = optional("HDF5 file, if SOURCE is options.json"),
    to: Format = typer.Option(
        Format.native, help="native: spacy-elmo's format; allennlp: options.json and HDF5"
    ),
    half: bool = typer.Option(False, "--half", help="Store each number in 16 bits, not 32"),
    round_weights: bool = typer.Option(
        False, "--round-weights", help="Store the biLM's numbers in 8 bits, with a scale per row"
    ),
    round_softmax: bool = typer.Option(
        False, "--round-softmax", help="Store the softmax's numbers in 8 bits, a scale per word"
    ),
    softmax: bool = typer.Option(True, help="Keep the softmax, if there is one"),
    meta: Optional[Path] = optional("JSON file with entries to add to meta.json"),
    force: bool = typer.Option(False, "--force", "-F", help="Replace the weights in OUTPUT"),
    quiet: bool = QUIET,
) -> None:
    """Convert weights: to a folder that loads without h5py, or to the AllenNLP format."""
    import torch

    from ..checkpoints.allennlp import write_allennlp
    from ..checkpoints.formats import CheckpointFiles, read_bilm, read_with_softmax
    from ..checkpoints.native import is_native, write_native
    from ..files import DIGESTS_FILE, read_digests, read_json_object
    from ..utils import show_names

    with exit_on_error(quiet) as console:
        if to is Format.native and is_native(output):
            if not force:
                raise ValueError(
                    f"'{output}' exists. Add `--force` to replace it, or give another path."
                )
            names = {path.name for path in output.iterdir() if not path.name.startswith(".")}
            if others := names - {*read_digests(output), DIGESTS_FILE}:
                raise ValueError(
                    f"'{output}' has other files than weights, and they would be removed: "
                    f"{show_names(others)}. Move them, or give a new folder."
                )
        files = CheckpointFiles.of(source, weights)
        # Before the weights, which take a while.
        notes = {**_read_notes(files), **(read_json_object(meta) if meta else {})}
        bilm, stored = read_with_softmax(files) if softmax else (read_bilm(files), None)
        if to is Format.allennlp:
            write_allennlp(bilm, output, stored)
            summary = "with its softmax" if stored else "without a softmax"
            console.finish(output, summary=summary)
            return
        write_native(
            bilm,
            output,
            softmax=stored,
            meta=notes,
            dtype=torch.float16 if half else torch.float32,
            round_weights=round_weights,
            round_softmax=round_softmax,
        )
        rows = [(key.replace("_", " "), _format(value)) for key, value in vars(bilm.config).items()]
        console.tell(format_table(rows, ("shape of the biLM", "")))
        console.finish(output)


def _read_notes(files: "CheckpointFiles") -> Dict[str, Any]:
    from ..checkpoints.native import read_meta
    from ..checkpoints.saved_pipeline import matches_pipeline
    from ..pipeline.saving import find_weights_meta

    meta = read_meta(files.path)
    if matches_pipeline(files):
        # Most of a pipeline's meta.json is not about the weights.
        meta = {**{key: meta[key] for key in ("lang",) if key in meta}, **find_weights_meta(files)}
        return {"source": files.path.name, **meta}
    return meta or {"source": files.path.name}


def _format(value: object) -> str:
    # Pairs of a width and a number of filters.
    return " ".join(f"{w}:{n}" for w, n in value) if isinstance(value, tuple) else str(value)
