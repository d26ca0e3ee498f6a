"""`python -m spacy elmo probe`: what each layer knows of a label."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, List, Optional

import typer

from .common import exit_on_error, read_numbers
from .option_conflicts import list_idle_of_report, require_no_conflicts
from .options import JSON, QUIET, SEEDS, WEIGHTS
from .outputs import require_output

if TYPE_CHECKING:
    from spacy.tokens import Doc


def probe(
    ctx: typer.Context,
    corpus: Path = typer.Argument(
        ..., help="Folder with train.spacy, dev.spacy and perhaps test.spacy"
    ),
    weights: str = WEIGHTS,
    attr: str = typer.Option("tag_", help="Attribute of the tokens to predict"),
    title: str = typer.Option(
        "", help="What the data is called in reports", show_default="the folder's name"
    ),
    seeds: str = SEEDS,
    limit: int = typer.Option(0, min=0, help="Docs of each file to read; 0: all"),
    json: Optional[Path] = JSON,
    quiet: bool = QUIET,
) -> None:
    """Train a linear classifier on each layer alone (table 6 of the paper)."""

    from ..checkpoints.loaders import load_embedder
    from ..experiments.layer_probe import probe_layers
    from ..experiments.results import get_effort, write_result
    from ..experiments.subsets import find_splits
    from ..experiments.tables import tabulate_probe
    from ..utils import require_seed

    start = time.perf_counter()
    numbers = read_numbers(seeds, int)
    with exit_on_error(quiet) as console:
        require_no_conflicts(ctx, list_idle_of_report(ctx.params))
        for seed in numbers:
            require_seed(seed)
        require_output(json)
        docs = {
            name: _read_docs(path)[: limit or None] for name, path in find_splits(corpus).items()
        }
        _require_labels(docs["train"], attr)
        embedder = load_embedder(weights or None)
        report = {"attr": attr, **probe_layers(embedder, docs, attr, numbers)}
        report.update(get_effort(start, embedder.hash_weights()))
        cells = tabulate_probe(report)
        console.show_table(cells.rows, cells.header)
        if json is not None:
            write_result(json, "probe", title or corpus.resolve().name, report)
        console.finish(json)


def _require_labels(docs: "List[Doc]", attr: str) -> None:
    """Any attribute of a token may be asked for, but not all are labels."""
    from ..errors import Errors

    try:
        kinds = {type(getattr(token, attr)) for doc in docs for token in doc}
    except (AttributeError, ValueError) as err:
        raise ValueError(Errors.EL041.format(split="train", attr=attr)) from err
    if not kinds <= {str, int, bool}:
        raise ValueError(Errors.EL041.format(split="train", attr=attr))


def _read_docs(path: Path) -> "List[Doc]":
    import spacy

    from ..errors import Errors
    from ..files import require_file
    from ..text.docbins import load_docbin

    require_file(path)
    try:
        return list(load_docbin(path).get_docs(spacy.blank("xx").vocab))
    # A file of another kind can fail anywhere in there.
    except Exception as err:
        error = err or type(err).__name__
        raise ValueError(Errors.EL170.format(path=path, error=error)) from err
