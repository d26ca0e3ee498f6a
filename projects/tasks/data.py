"""Read the task data as published: plain, or compressed with xz under the same name."""

import lzma
import zipfile
from collections.abc import Iterator
from pathlib import Path

EWT = "pos-dep/ud_english_ewt"
KO_GSD = "korean/ud_korean_gsd"
WNUT17 = "ner/wnut17"
POLARITY = "sentiment/sentence_polarity"

# Where the tags are, and the start of the files' names.
_TAGGED = {"ewt": f"{EWT}/en_ewt-ud", "ko_gsd": f"{KO_GSD}/ko_gsd-ud"}
_WNUT17_FILES = {
    "train": f"{WNUT17}/wnut17train.conll",
    "dev": f"{WNUT17}/emerging.dev.conll",
    "test": f"{WNUT17}/emerging.test.annotated",
}


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Read a text file, or the one of the same name with .xz at its end.

    path (Path): the plain file.
    encoding (str): of the text.
    RETURNS (str): its content.
    RAISES (FileNotFoundError): if there is neither.
    """
    packed = path.with_name(f"{path.name}.xz")
    if not path.exists() and packed.exists():
        return lzma.decompress(packed.read_bytes()).decode(encoding)
    return path.read_text(encoding)


def read_tags(root: Path, task: str, split: str) -> Iterator[tuple[list[str], list[str]]]:
    """Read a UD treebank.

    YIELDS (tuple[list[str], list[str]]): words and XPOS tags of a sentence.
    """
    for block in read_text(root / f"{_TAGGED[task]}-{split}.conllu").split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines() if not line.startswith("#")]
        # Words only: 1-2 is a multiword token, 1.1 an empty node.
        rows = [row for row in rows if row[0].isdigit()]
        if rows:
            yield [row[1] for row in rows], [row[4] for row in rows]


def read_entities(root: Path, split: str) -> Iterator[tuple[list[str], list[str]]]:
    """Read WNUT 2017. A token may begin with "#"; an empty line may hold a tab.

    YIELDS (tuple[list[str], list[str]]): words and BIO tags of a sentence.
    """
    words: list[str] = []
    tags: list[str] = []
    for line in [*read_text(root / _WNUT17_FILES[split]).split("\n"), ""]:
        if line.strip():
            word, tag = line.split("\t")[:2]
            words.append(word)
            tags.append(tag)
        elif words:
            yield words, tags
            words, tags = [], []


def read_polarity(root: Path, split: str) -> Iterator[tuple[list[str], str]]:
    """Read the sentence polarity data, split by line number modulo 10: 9 is test, 8 dev.

    YIELDS (tuple[list[str], str]): words of a sentence, and "pos" or "neg".
    """
    for label in ("pos", "neg"):
        for i, line in enumerate(_read_polarity_file(root, label).splitlines()):
            if {9: "test", 8: "dev"}.get(i % 10, "train") == split:
                yield line.split(), label


def _read_polarity_file(root: Path, label: str) -> str:
    name = f"rt-polarity.{label}"
    archive = root / POLARITY / "sentence_polarity.zip"
    if not archive.exists():
        return read_text(root / POLARITY / name, "latin-1")
    with zipfile.ZipFile(archive) as files:
        return files.read(f"sentence_polarity/{name}").decode("latin-1")
