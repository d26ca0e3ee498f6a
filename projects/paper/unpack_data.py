"""Unpack WordNet's dict folder, GloVe vectors and SQuAD's questions."""

import re
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import typer

from spacy_elmo.text.text_files import open_binary

_RANK = re.compile(r"words(\d+)-")


def main(
    source: Path = typer.Argument(..., help="Folder with the task data"),
    output: Path = typer.Argument(..., help="Folder to write"),
    n_words: int = typer.Option(40_000, help="Most frequent words of GloVe"),
) -> None:
    """Write OUTPUT/dict, OUTPUT/glove.txt and OUTPUT/squad.json."""
    (output / "dict").mkdir(parents=True, exist_ok=True)
    with tarfile.open(find(source / "wsd/wordnet30", "*.tar.*")) as files:
        for member in files:
            if member.isfile() and Path(member.name).parent.name == "dict":
                content = files.extractfile(member)
                assert content is not None
                (output / "dict" / Path(member.name).name).write_bytes(content.read())
    with (output / "glove.txt").open("wb") as vectors:
        vectors.writelines(islice(read_glove(source / "vectors"), n_words))
    questions = find(source / "qa", "**/dev-v1.1*json*")
    with open_binary(questions) as packed, (output / "squad.json").open("wb") as plain:
        shutil.copyfileobj(packed, plain)
    print(f"Wrote {output}")


def find(folder: Path, pattern: str) -> Path:
    """RETURNS (Path): the first file. RAISES (FileNotFoundError): if no file matches."""
    found = sorted(folder.glob(pattern))
    if not found:
        raise FileNotFoundError(f"There is no {pattern} in {folder}")
    return found[0]


def read_glove(folder: Path) -> Iterator[bytes]:
    """YIELDS (bytes): lines of GloVe's 50 dimensions, the most frequent words first."""
    archive = folder / "glove.6B.zip"
    if archive.exists():
        with zipfile.ZipFile(archive) as files, files.open("glove.6B.50d.txt") as lines:
            yield from lines
        return
    # The pieces are named by the ranks of their words.
    parts = sorted(folder.glob("**/glove*.txt.xz"), key=lambda p: int(_RANK.findall(p.name)[0]))
    if not parts:
        raise FileNotFoundError(f"There is no glove.6B.zip in {folder}")
    yield from chain.from_iterable(open_binary(path) for path in parts)


if __name__ == "__main__":
    typer.run(main)
