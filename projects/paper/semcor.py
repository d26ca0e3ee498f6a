"""Convert SemCor 3.0 for `spacy elmo train-senses`: brown1 and brown2, whose open-class words
are all tagged. About a tenth of brown2's texts is set aside."""

import json
import re
import tarfile
from collections.abc import Iterator
from hashlib import md5
from html import unescape
from itertools import chain
from pathlib import Path

import typer

_PART = re.compile(r"<(s|wf|punc)([^>]*)>([^<]*)")


def main(
    source: Path = typer.Argument(..., help="Folder with semcor3.0, or with semcor3.0.tar.xz"),
    output: Path = typer.Argument(..., help="Folder to write"),
    limit: int = typer.Option(0, help="Texts to read, 0 for all"),
) -> None:
    """Write OUTPUT/train.jsonl, OUTPUT/dev.jsonl, and OUTPUT/sentences.txt with all of their
    sentences."""
    output.mkdir(parents=True, exist_ok=True)
    parts: dict[str, list[dict]] = {"train": [], "dev": []}
    for folder, name, text in list(read_texts(source))[: limit or None]:
        number = int(md5(name.encode()).hexdigest(), 16)
        is_dev = folder == "brown2" and number % 10 == 0
        parts["dev" if is_dev else "train"] += read_sentences(name, text)
    if not parts["dev"]:
        raise typer.BadParameter(
            f"the first {limit} texts have none that is set aside. Give at least 60, or 0 for all"
        )
    for split, lines in parts.items():
        content = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
        (output / f"{split}.jsonl").write_text(content, "utf-8")
        print(f"{split}: {len(lines)} sentences")
    sentences = [
        " ".join(line["tokens"]).replace("_", " ").replace("``", '"').replace("''", '"')
        for line in chain.from_iterable(parts.values())
    ]
    (output / "sentences.txt").write_text("\n".join(sentences) + "\n", "utf-8")


def read_texts(source: Path) -> Iterator[tuple[str, str, str]]:
    """YIELDS (tuple[str, str, str]): "brown1" or "brown2", name and content of a text."""
    archive = source / "semcor3.0.tar.xz"
    if archive.exists():
        with tarfile.open(archive) as files:
            found = {
                member.name: files.extractfile(member).read()  # type: ignore[union-attr]
                for member in files
                if member.isfile()
            }
    else:
        paths = (path for path in source.rglob("tagfiles/br-*") if path.is_file())
        found = {path.as_posix(): path.read_bytes() for path in paths}
    for path, content in sorted(found.items(), key=lambda item: item[0].split("/")[-1]):
        folder, _, name = path.split("/")[-3:]
        if folder in ("brown1", "brown2"):
            yield folder, name, content.decode("latin-1")


def read_sentences(name: str, text: str) -> Iterator[dict]:
    """YIELDS (dict): a line for `spacy elmo train-senses`."""
    sentence: dict = {}
    for kind, about, word in _PART.findall(text):
        if kind == "s":
            if sentence:
                yield sentence
            number = re.search(r"snum=(\d+)", about)
            assert number is not None
            sentence = {"id": f"{name}.s{number[1]}", "tokens": [], "instances": []}
            continue
        values = dict(re.findall(r"(\w+)=(\S+)", about))
        if "lexsn" in values and "lemma" in values:
            lemma, senses = values["lemma"], values["lexsn"].split(";")
            keys = [f"{lemma}%{sense}" for sense in senses]
            place = len(sentence["tokens"])
            sentence["instances"].append([place, lemma, values.get("pos", ""), keys])
        sentence["tokens"].append(unescape(word))
    if sentence:
        yield sentence


if __name__ == "__main__":
    typer.run(main)
