"""Take the training and the held-out text out of their archives."""

import shutil
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import typer
from text_folders import text_folder


def main(
    source: Path = typer.Argument(..., help="Folder with *.tar.xz, or with text already"),
    output: Path = typer.Argument(..., help="Folder to write"),
) -> None:
    """Write OUTPUT/text with the text of all archives, and OUTPUT/heldout. An archive such as
    heldout-more.tar.xz goes to a separate folder: figures are of one held-out text."""
    with text_folder(output) as folder:
        for archive in sorted(source.glob("*.tar.xz")):
            unpack(archive, folder)
        for name in ("text", "heldout"):
            if not (folder / name).exists():
                shutil.copytree(source / name, folder / name)
    for folder in sorted(output.iterdir()):
        n_bytes = sum(file.stat().st_size for file in folder.rglob("*.txt"))
        print(f"{folder}: {n_bytes / 1e6:.0f} MB")


def unpack(archive: Path, output: Path) -> None:
    """Put the folders of an archive beside those of the others."""
    with TemporaryDirectory(dir=output) as temporary:
        with tarfile.open(archive) as files:
            files.extractall(temporary, filter="data")
        for folder in (path for path in Path(temporary).iterdir() if path.is_dir()):
            is_heldout = folder.name == "heldout"
            name = archive.name.split(".")[0] if is_heldout else folder.name
            shutil.copytree(folder, output / name, dirs_exist_ok=True)


if __name__ == "__main__":
    typer.run(main)
