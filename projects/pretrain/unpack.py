"""Take the training and the held-out text out of their archives."""

import shutil
import tarfile
from pathlib import Path

import typer


def main(
    source: Path = typer.Argument(..., help="Folder with *.tar.xz, or with text already"),
    output: Path = typer.Argument(..., help="Folder to write"),
) -> None:
    """Write OUTPUT/text and OUTPUT/heldout."""
    for archive in sorted(source.glob("*.tar.xz")):
        with tarfile.open(archive) as files:
            files.extractall(output, filter="data")
    for name in ("text", "heldout"):
        if not (output / name).exists():
            shutil.copytree(source / name, output / name)
        n_bytes = sum(file.stat().st_size for file in (output / name).rglob("*.txt"))
        print(f"{output / name}: {n_bytes / 1e6:.0f} MB")


if __name__ == "__main__":
    typer.run(main)
