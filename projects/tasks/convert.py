"""Convert the task data to .spacy: a doc for each sentence."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import spacy
import typer
from data import SPLITS, read_entities, read_polarity, read_reviews, read_tags
from spacy.tokens import Doc, DocBin
from spacy.training import biluo_tags_to_spans, iob_to_biluo
from spacy.vocab import Vocab
from tasks import COMPONENTS, ENGLISH, REPEATED

from spacy_elmo.text.languages import TOKENIZER, make_tokenizer


def main(
    source: Path = typer.Argument(..., help="Folder with the task data"),
    output: Path = typer.Argument(..., help="Folder to write"),
    limit: int = typer.Option(0, help="Sentences of each file, 0 for all"),
    tasks: str = typer.Option(ENGLISH, help="Tasks"),
) -> None:
    """Write OUTPUT/<task>/<split>.spacy."""
    vocab = spacy.blank("xx").vocab
    makers = {"ner": make_entity_docs, "tagger": make_tag_docs, "textcat": make_rated_docs}
    for task in tasks.split(","):
        make_docs = partial(makers[COMPONENTS[task]], vocab, source, task=task)
        docs = {split: list(islice(make_docs(split), limit or None)) for split in SPLITS}
        if task in REPEATED:
            known = {doc.text for doc in docs["train"]}
            if new := [doc for doc in docs["test"] if doc.text not in known]:
                docs["new"] = new
        for name, found in docs.items():
            write_docs(found, output / task / f"{name}.spacy")


def write_docs(docs: Iterable[Doc], path: Path) -> None:
    """Write a .spacy file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    doc_bin = DocBin(docs=docs)
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


def make_rated_docs(vocab: Vocab, source: Path, split: str, *, task: str) -> Iterator[Doc]:
    """YIELDS (Doc): with `cats`, positive and negative in turn, so that a part of the
    file holds both."""
    docs: dict[str, list[Doc]] = {"pos": [], "neg": []}
    for doc, label in read_rated(vocab, source, split, task):
        doc.cats = {"pos": float(label == "pos"), "neg": float(label == "neg")}
        docs[label].append(doc)
    for pair in zip(docs["pos"], docs["neg"]):
        yield from pair


def read_rated(vocab: Vocab, source: Path, split: str, task: str) -> Iterator[tuple[Doc, str]]:
    """YIELDS (tuple[Doc, str]): a text, and "pos" or "neg"."""
    if task == "nsmc":
        tokenizer = make_tokenizer("ko", TOKENIZER)
        for text, label in read_reviews(source, split):
            doc = tokenizer(text)
            yield (
                Doc(vocab, words=[t.text for t in doc], spaces=[bool(t.whitespace_) for t in doc]),
                label,
            )
    else:
        for words, label in read_polarity(source, split):
            yield Doc(vocab, words=words), label


if __name__ == "__main__":
    typer.run(main)
