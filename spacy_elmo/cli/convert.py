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
    softmax: bool = typer.Option(True, help="Keep the softmax, if there is one"),
    meta: Optional[Path] = typer.Option(None, help="JSON file to add to meta.json"),
) -> None:
    """Convert weights into a folder that loads without h5py."""
    import srsly
    import torch

    from ..checkpoints.files import CheckpointFiles
    from ..checkpoints.native import META_FILE, write_native
    from ..checkpoints.reader import find_reader
    from ..loaders import load_embedder

    with exit_on_error():
        bilm = load_embedder(source, weights).bilm
        files = CheckpointFiles.of(source, weights)
        stored = find_reader(files).read_softmax(files) if softmax else None
        about = {"source": source.name}
        if (source / META_FILE).exists():
            about = srsly.read_json(source / META_FILE)
        about.update(srsly.read_json(meta) if meta else {})
        dtype = torch.float16 if half else torch.float32
        write_native(bilm, output, softmax=stored, meta=about, dtype=dtype)
    msg.good(f"Wrote {output}", str(bilm.config))
