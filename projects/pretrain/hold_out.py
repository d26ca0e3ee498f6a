"""Set a part of the lines of a corpus aside, the same ones every time."""

import lzma
from hashlib import blake2b
from pathlib import Path

import typer


def main(
    source: Path = typer.Argument(..., help="Folder with .txt or .txt.xz"),
    output: Path = typer.Argument(..., help="Folder to write"),
    every: int = typer.Option(200, help="One of so many lines is held out"),
) -> None:
    """Write OUTPUT/text and OUTPUT/heldout. Lines that are equal go the same way."""
    for name in ("text", "heldout"):
        (output / name).mkdir(parents=True, exist_ok=True)
    for path in sorted([*source.glob("*.txt"), *source.glob("*.txt.xz")]):
        data = path.read_bytes()
        text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode("utf-8")
        parts: dict[str, list[str]] = {"text": [], "heldout": []}
        for line in text.splitlines():
            number = int.from_bytes(blake2b(line.strip().encode(), digest_size=8).digest(), "big")
            parts["heldout" if number % every == 0 else "text"].append(line)
        for name, lines in parts.items():
            target = output / name / path.name.removesuffix(".xz")
            target.write_text("\n".join(lines) + "\n", encoding="utf-8")
            print(f"{target}: {len(lines)} lines")


if __name__ == "__main__":
    typer.run(main)
