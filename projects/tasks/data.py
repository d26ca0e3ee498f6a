"""Read the task data as published: plain, or compressed with xz under the same name."""

import csv
import lzma
import zipfile
from collections.abc import Iterator
from pathlib import Path

EWT = "pos-dep/ud_english_ewt"
KO_GSD = "korean/ud_korean_gsd"
WNUT17 = "ner/wnut17"
POLARITY = "sentiment/sentence_polarity"
NSMC = "korean/nsmc/nsmc"

# Where the tags are, and the start of the files' names.
_TAGGED = {"ewt": f"{EWT}/en_ewt-ud", "ko_gsd": f"{KO_GSD}/ko_gsd-ud"}
SPLITS = ("train", "dev", "test")
# Files by split, and which column the words are in, before their tags.
_ENTITIES = {
    "wnut17": (
        {
            "train": f"{WNUT17}/wnut17train.conll",
            "dev": f"{WNUT17}/emerging.dev.conll",
            "test": f"{WNUT17}/emerging.test.annotated",
        },
        0,
    ),
    "gum": ({split: f"ner/gum_named/gum-named-{split}.conll" for split in SPLITS}, 0),
    "uner_ewt": ({split: f"ner/uner_ewt/en_ewt-ud-{split}.iob2" for split in SPLITS}, 1),
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


def read_entities(root: Path, task: str, split: str) -> Iterator[tuple[list[str], list[str]]]:
    """Read entities, one token a line. A token may begin with "#", where comments have no
    second column; an empty line may hold a tab.

    YIELDS (tuple[list[str], list[str]]): words and BIO tags of a sentence, each entity with a
        B at its start.
    """
    files, column = _ENTITIES[task]
    words: list[str] = []
    tags: list[str] = []
    for line in [*read_text(root / files[split]).split("\n"), ""]:
        cells = line.split("\t")
        if line.strip() and len(cells) > column + 1:
            words.append(cells[column])
            tags.append(cells[column + 1].strip())
        elif not line.strip() and words:
            yield words, _begin_entities(tags)
            words, tags = [], []


def _begin_entities(tags: list[str]) -> list[str]:
    """RETURNS (list[str]): the same tags, but B for an I that goes on with nothing."""
    return [
        f"B{tag[1:]}" if tag[0] == "I" and last[1:] != tag[1:] else tag
        for last, tag in zip(["O", *tags], tags)
    ]


def read_polarity(root: Path, split: str) -> Iterator[tuple[list[str], str]]:
    """Read the sentence polarity data, split by line number modulo 10: 9 is test, 8 dev.

    YIELDS (tuple[list[str], str]): words of a sentence, and "pos" or "neg".
    """
    for label in ("pos", "neg"):
        for i, line in enumerate(_read_polarity_file(root, label).splitlines()):
            if {9: "test", 8: "dev"}.get(i % 10, "train") == split:
                yield line.split(), label


def read_reviews(root: Path, split: str) -> Iterator[tuple[str, str]]:
    """Read Korean film reviews: a line for each, its columns id, document and label.

    YIELDS (tuple[str, str]): a review, and "pos" or "neg".
    """
    lines = read_text(root / f"{NSMC}-{split}.tsv").split("\n")
    # Quotation marks are as people typed them.
    rows = csv.DictReader(filter(None, lines), delimiter="\t", quoting=csv.QUOTE_NONE)
    for row in rows:
        yield row["document"], {"1": "pos", "0": "neg"}[row["label"]]


def _read_polarity_file(root: Path, label: str) -> str:
    name = f"rt-polarity.{label}"
    archive = root / POLARITY / "sentence_polarity.zip"
    if not archive.exists():
        return read_text(root / POLARITY / name, "latin-1")
    with zipfile.ZipFile(archive) as files:
        return files.read(f"sentence_polarity/{name}").decode("latin-1")
