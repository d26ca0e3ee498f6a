"""`python -m spacy elmo train-senses`: train a component that chooses word senses."""

import time
from pathlib import Path
from typing import Any, Dict, Optional, Set

import typer

from .common import Console, exit_on_error, require_output, writing
from .options import JSON, LANG, QUIET, WEIGHTS, optional


def train_senses(
    train: Path = typer.Argument(
        ..., help="Sense-annotated sentences (.jsonl)", exists=True, dir_okay=False
    ),
    wordnet: Path = typer.Argument(..., help="The folder `dict` of WordNet", exists=True),
    output: Path = typer.Argument(..., help="Folder for the pipeline"),
    weights: str = WEIGHTS,
    test: Optional[Path] = optional("Annotated sentences to test on", exists=True, dir_okay=False),
    title: str = optional("Name of the data in reports", "the file's name", default=""),
    lang: str = LANG,
    json: Optional[Path] = JSON,
    quiet: bool = QUIET,
) -> None:
    """Train the component elmo_senses: it chooses the sense with the nearest mean vector
    (table 5 of the paper). A tenth of the docs is held out to choose the layer."""
    from ..experiments.results import get_effort, write_result
    from ..files import atomic_folder, require_no_others
    from ..layers.elmo_layers import get_embedder
    from ..pipeline.saving import make_elmo_pipeline
    from ..senses.annotated import read_sentences
    from ..senses.sense_model import SenseModel
    from ..senses.sense_training import require_docs
    from ..senses.sense_training import train_senses as fit
    from ..senses.wordnet import read_wordnet, require_wordnet
    from ..text.languages import make_tokenizer

    start = time.perf_counter()
    with exit_on_error(quiet) as console:
        # What takes a minute or an hour comes last.
        require_output(json)
        known: Set[str] = set()
        # A saved pipeline is replaced: it has these files, and folders.
        if all((output / name).is_file() for name in ("meta.json", "config.cfg")):
            known = {"meta.json", "config.cfg", "tokenizer"}
            known |= {path.name for path in output.iterdir() if path.is_dir()}
        require_no_others(output, known)
        require_output(output.absolute().parent / f".{output.name}.test")
        make_tokenizer(lang, {})
        require_wordnet(wordnet)
        test_sentences = list(read_sentences(test)) if test is not None else []
        require_docs(read_sentences(train))
        nlp = make_elmo_pipeline(weights, lang, {}, store_layers=True)
        inventory = read_wordnet(wordnet)
        elmo: Any = nlp.get_pipe("elmo")
        elmo_senses: Any = nlp.add_pipe("elmo_senses")
        embedder = get_embedder(elmo.model)
        sentences = console.track(read_sentences(train), unit=" sentences", desc=train.name)
        centroids, report = fit(embedder, inventory, sentences, test_sentences)
        elmo_senses.model = SenseModel(inventory, centroids)
        # Printed first: if the disk is full, only the files are lost.
        _show(report, console)
        with writing(output), atomic_folder(output.resolve()) as folder:
            nlp.to_disk(folder)
        if json is not None:
            report = {**report, **get_effort(start, embedder.hash_weights())}
            with writing(json):
                write_result(json, "senses", title or train.stem, report)
        console.finish(output, json)


def _show(report: Dict[str, Any], console: Console) -> None:
    """Show the shares of right senses."""
    from ..experiments.contexts import name_layers

    splits = [report[name] for name in ("tune", "test") if report[name]]
    rows = [("first sense", "first"), ("most frequent", "frequent")]
    cells = [(title, *(f"{split[key]:.1%}" for split in splits)) for title, key in rows]
    layers = report["tune"]["layers"]
    for name, layer in zip([*name_layers(len(layers) - 1), "average"], layers):
        cells.append((f"nearest, {name}", *(f"{split['layers'][layer]:.1%}" for split in splits)))
    chosen = f"layer {report['layer']}, prior {report['prior']}"
    for title, key in ((chosen, "chosen"), ("the same, from forms alone", "forms")):
        cells.append((title, *(f"{split[key]:.1%}" for split in splits)))
    console.show_table(cells, ("right senses", "tune", "test")[: 1 + len(splits)])
