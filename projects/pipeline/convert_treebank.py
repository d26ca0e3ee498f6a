"""Convert a treebank in CoNLL-U to .spacy: a doc for each paragraph, with entities if there are."""

import lzma
import sys
from collections.abc import Iterator
from pathlib import Path

import typer
from spacy.tokens import Doc, DocBin
from spacy.training import biluo_tags_to_spans, iob_to_biluo
from spacy.training.converters import conllu_to_docs


def main(
    treebank: Path = typer.Argument(..., help="Folder with NAME-ud-train.conllu, dev and test"),
    output: Path = typer.Argument(..., help="Folder to write"),
    entities: str = typer.Option("", help="Folder with the same sentences as NAME-ud-train.iob2"),
    n_sents: int = typer.Option(5, help="Most sentences of a training doc: long ones are slow"),
) -> None:
    """Write OUTPUT/train.spacy, dev.spacy and test.spacy. Files may end in .xz."""
    output.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev", "test"):
        text = read_file(treebank, f"*-ud-{split}.conllu")
        tags = read_entities(read_file(Path(entities), f"*-ud-{split}.iob2")) if entities else None
        most = n_sents if split == "train" else sys.maxsize
        docs = DocBin(docs=make_docs(text, tags, most))
        docs.to_disk(output / f"{split}.spacy")
        print(f"{output / split}.spacy: {len(docs)} paragraphs")


def find_file(folder: Path, pattern: str) -> Path:
    """RETURNS (Path): The first file of a pattern, or of that pattern and .xz."""
    found = [*folder.glob(pattern), *folder.glob(f"{pattern}.xz")]
    if not found:
        raise FileNotFoundError(f"'{folder}' has no file {pattern} or {pattern}.xz.")
    return found[0]


def read_file(folder: Path, pattern: str) -> str:
    """RETURNS (str): What is in a file, which may end in .xz."""
    path = find_file(folder, pattern)
    content = path.read_bytes()
    return (lzma.decompress(content) if path.suffix == ".xz" else content).decode("utf-8")


def read_entities(text: str) -> dict[str, tuple[list[str], list[str]]]:
    """RETURNS (dict[str, tuple[list[str], list[str]]]): By sent_id: words and BIO tags, where a B
    may be missing at the start of an entity."""
    found = {}
    for block in text.strip().split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines() if line[0].isdigit()]
        found[find_comment(block, "sent_id")] = [row[1] for row in rows], [row[2] for row in rows]
    return found


def find_comment(block: str, name: str) -> str:
    """RETURNS (str): A comment of a sentence, "" without it."""
    start = f"# {name} = "
    return next((li[len(start) :] for li in block.splitlines() if li.startswith(start)), "")


def make_docs(
    text: str, entities: dict[str, tuple[list[str], list[str]]] | None, n_sents: int
) -> Iterator[Doc]:
    """YIELDS (Doc): A paragraph, or `n_sents` of its sentences. The entities of sentences whose
    words differ are unknown."""
    blocks = [block for block in text.split("\n\n") if block.strip()]
    paragraph: list[Doc] = []
    for block, doc in zip(blocks, conllu_to_docs(text, n_sents=1, no_print=True), strict=True):
        lines = block.splitlines()
        is_new = any(line.startswith(("# newpar", "# newdoc")) for line in lines)
        if paragraph and (is_new or len(paragraph) == n_sents):
            yield Doc.from_docs(paragraph, ensure_whitespace=False)
            paragraph = []
        words, tags = (entities or {}).get(find_comment(block, "sent_id"), ([], []))
        if words == [token.text for token in doc]:
            spans = biluo_tags_to_spans(doc, iob_to_biluo(tags))
            doc.set_ents([span for span in spans if span.label_], default="outside")
        else:
            doc.set_ents([], default="missing")
        paragraph.append(doc)
    yield Doc.from_docs(paragraph, ensure_whitespace=False)


if __name__ == "__main__":
    typer.run(main)
