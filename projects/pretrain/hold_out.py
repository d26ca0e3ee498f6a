"""Set a part of the lines of a corpus aside, the same ones every time."""

import lzma
from hashlib import blake2b
from pathlib import Path

import typer
from text_folders import text_folder


def main(
    source: Path = typer.Argument(..., help="Folder with .txt or .txt.xz"),
    output: Path = typer.Argument(..., help="Folder to write"),
    every: int = typer.Option(200, help="One line of this number is held out"),
) -> None:
    """Write OUTPUT/text and OUTPUT/heldout. Lines that are equal go the same way."""
    with text_folder(output) as folder:
        for name in ("text", "heldout"):
            (folder / name).mkdir()
        for path in sorted([*source.glob("*.txt"), *source.glob("*.txt.xz")]):
            target = path.name.removesuffix(".xz")
            for name, lines in split_lines(path, every).items():
                content = "\n".join(lines) + "\n"
                (folder / name / target).write_text(content, encoding="utf-8")
                print(f"{output / name / target}: {len(lines)} lines")


def split_lines(path: Path, every: int) -> dict[str, list[str]]:
    """RETURNS (dict[str, list[str]]): lines of "text" and "heldout"."""
    data = path.read_bytes()
    text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode("utf-8")
    parts: dict[str, list[str]] = {"text": [], "heldout": []}
    for line in text.splitlines():
        number = int.from_bytes(blake2b(line.strip().encode(), digest_size=8).digest(), "big")
        parts["heldout" if number % every == 0 else "text"].append(line)
    return parts


if __name__ == "__main__":
    typer.run(main)
