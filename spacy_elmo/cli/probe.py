"""`python -m spacy elmo probe`: what each layer knows of a label."""

import time
from pathlib import Path
from typing import Optional

import typer
from wasabi import msg, table

from .util import exit_on_error, read_numbers


def probe(
    corpus: Path = typer.Argument(
        ..., help="Folder with train.spacy, dev.spacy and perhaps test.spacy"
    ),
    weights: str = typer.Option("", help="Folder of a biLM; the bundled one if left out"),
    attr: str = typer.Option("tag_", help="Attribute of the tokens to predict"),
    title: str = typer.Option("", help="What the data is called in reports"),
    seeds: str = typer.Option("0,1,2", help="Seeds, with commas"),
    limit: int = typer.Option(0, min=0, help="Docs of each file, 0 for all"),
    json: Optional[Path] = typer.Option(None, help="JSON file to write", dir_okay=False),
) -> None:
    """Train a linear classifier on each layer alone (table 6 of the paper)."""

    import spacy
    from spacy.tokens import DocBin

    from ..experiments.probe import probe_layers
    from ..experiments.subsets import find_splits
    from ..experiments.tables import tabulate_probe
    from ..loaders import load_embedder
    from ..results import get_effort, write_result

    start = time.perf_counter()
    with exit_on_error():
        vocab = spacy.blank("xx").vocab
        docs = {
            name: list(DocBin().from_disk(path).get_docs(vocab))[: limit or None]
            for name, path in find_splits(corpus).items()
        }
        embedder = load_embedder(weights or None)
        report = {"attr": attr, **probe_layers(embedder, docs, attr, read_numbers(seeds, int))}
        report.update(get_effort(start, embedder.hash_weights()))
    cells = tabulate_probe(report)
    print(table(cells.rows, header=cells.header, divider=True))
    if json is not None:
        write_result(json, "probe", title or corpus.name, report)
        msg.good(f"Wrote {json}")
