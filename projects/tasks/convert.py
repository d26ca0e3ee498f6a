"""Convert the task data to .spacy: a doc for each sentence."""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import spacy
import typer
from data import SPLITS, read_entities, read_polarity, read_tags
from spacy.tokens import Doc, DocBin
from spacy.training import biluo_tags_to_spans, iob_to_biluo
from spacy.vocab import Vocab
from tasks import COMPONENTS, ENGLISH


def main(
    source: Path = typer.Argument(..., help="Folder with the task data"),
    output: Path = typer.Argument(..., help="Folder to write"),
    limit: int = typer.Option(0, help="Sentences of each file, 0 for all"),
    tasks: str = typer.Option(ENGLISH, help="Tasks"),
) -> None:
    """Write OUTPUT/<task>/<split>.spacy."""
    vocab = spacy.blank("xx").vocab
    makers = {"ner": make_entity_docs, "tagger": make_tag_docs, "textcat": make_polarity_docs}
    for task in tasks.split(","):
        make_docs = partial(makers[COMPONENTS[task]], task=task)
        for split in SPLITS:
            docs = make_docs(vocab, source, split)
            path = output / task / f"{split}.spacy"
            path.parent.mkdir(parents=True, exist_ok=True)
            doc_bin = DocBin(docs=islice(docs, limit or None))
            doc_bin.to_disk(path)
            print(f"{path}: {len(doc_bin)} sentences")


def make_tag_docs(vocab: Vocab, source: Path, split: str, *, task: str) -> Iterator[Doc]:
    """YIELDS (Doc): with `tag_`."""
    for words, tags in read_tags(source, task, split):
        yield Doc(vocab, words=words, tags=tags)


def make_entity_docs(vocab: Vocab, source: Path, split: str, *, task: str) -> Iterator[Doc]:
    """YIELDS (Doc): with `ents`."""
    for words, tags in read_entities(source, task, split):
        doc = Doc(vocab, words=words)
        doc.ents = biluo_tags_to_spans(doc, iob_to_biluo(tags))
        yield doc


def make_polarity_docs(vocab: Vocab, source: Path, split: str, *, task: str) -> Iterator[Doc]:
    """YIELDS (Doc): with `cats`, positive and negative in turn, so that a part of the
    file holds both."""
    docs: dict[str, list[Doc]] = {"pos": [], "neg": []}
    for words, label in read_polarity(source, split):
        doc = Doc(vocab, words=words)
        doc.cats = {"pos": float(label == "pos"), "neg": float(label == "neg")}
        docs[label].append(doc)
    for pair in zip(docs["pos"], docs["neg"]):
        yield from pair


if __name__ == "__main__":
    typer.run(main)
