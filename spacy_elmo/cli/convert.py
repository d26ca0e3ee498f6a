"""`python -m spacy elmo convert`: other formats -> our folder."""

from pathlib import Path
from typing import Optional

import typer
from wasabi import msg

from .util import exit_on_error


def convert(
    source: Path = typer.Argument(..., help="Folder with weights, or options.json"),
    output: Path = typer.Argument(..., help="Folder to write", file_okay=False),
    weights: Optional[Path] = typer.Option(None, help="HDF5 file, if SOURCE is options.json"),
    half: bool = typer.Option(False, "--half", help="Store 16 bits a number, not 32"),
) -> None:
    """Convert published weights into a folder that loads without h5py."""
    import torch

    from ..checkpoints.native import write_native
    from ..loaders import load_embedder

    with exit_on_error():
        bilm = load_embedder(source, weights).bilm
        dtype = torch.float16 if half else torch.float32
        write_native(bilm, output, meta={"source": source.name}, dtype=dtype)
    msg.good(f"Wrote {output}", str(bilm.config))
