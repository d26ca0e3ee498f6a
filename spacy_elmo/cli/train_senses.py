"""`python -m spacy elmo train-senses`: a component that tells word senses apart."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Tuple

import typer

from .common import exit_on_error
from .option_conflicts import list_idle_of_report, require_no_conflicts
from .options import JSON, LANG, QUIET, WEIGHTS
from .outputs import require_output, require_pipeline_folder, writing

if TYPE_CHECKING:
    from spacy.language import Language

    from ..senses.annotated import SenseSentence


def train_senses(
    ctx: typer.Context,
    train: Path = typer.Argument(
        ..., help="Sense-annotated sentences (.jsonl)", exists=True, dir_okay=False
    ),
    wordnet: Path = typer.Argument(..., help="WordNet's folder dict", exists=True),
    output: Path = typer.Argument(..., help="Folder for the pipeline"),
    weights: str = WEIGHTS,
    test: Optional[Path] = typer.Option(
        None,
        help="Sentences to measure on, once",
        show_default="none",
        exists=True,
        dir_okay=False,
    ),
    title: str = typer.Option(
        "", help="What the data is called in reports", show_default="the file's name"
    ),
    lang: str = LANG,
    json: Optional[Path] = JSON,
    quiet: bool = QUIET,
) -> None:
    """Train senses for the component elmo_senses: the nearest mean vector (table 5 of the
    paper). A tenth of the docs chooses the layer."""
    from ..senses.annotated import read_sentences
    from ..senses.sense_training import require_docs
    from ..senses.wordnet import require_wordnet
    from ..text.corpus import make_tokenizer

    start = time.perf_counter()
    with exit_on_error(quiet) as console:
        require_no_conflicts(ctx, list_idle_of_report(ctx.params))
        # What takes a minute or an hour comes last.
        require_output(json)
        require_pipeline_folder(output)
        make_tokenizer(lang, {})
        require_wordnet(wordnet)
        test_sentences = list(read_sentences(test)) if test is not None else []
        require_docs(read_sentences(train))
        nlp = _make_pipeline(lang, weights)
        sentences = console.track(read_sentences(train), unit="sentences", desc=train.name)
        report = _fit(nlp, wordnet, sentences, test_sentences, start)
        header, rows = _tabulate(report)
        # Printed first: if the disk is full, only the files are lost.
        console.show_table(rows, header)
        _write(nlp, report, output, json, title or train.stem)
        console.finish(output, json)


def _make_pipeline(lang: str, weights: str) -> "Language":
    """RETURNS (Language): elmo with its weights, and elmo_senses without senses."""
    import spacy

    from ..checkpoints.loaders import pipe_config

    nlp = spacy.blank(lang)
    shape = pipe_config(weights) if weights else {}
    elmo: Any = nlp.add_pipe("elmo", config={**shape, "store_layers": True})
    if weights:
        elmo.load(weights)
    nlp.add_pipe("elmo_senses")
    return nlp


def _fit(
    nlp: "Language",
    wordnet: Path,
    train: "Iterable[SenseSentence]",
    test: "List[SenseSentence]",
    start: float,
) -> Dict[str, Any]:
    """Train the component elmo_senses. RETURNS (Dict[str, Any]): accuracies and effort."""
    from ..experiments.results import get_effort
    from ..inference.identity import identify
    from ..layers.elmo_layers import get_embedder
    from ..senses.sense_model import SenseModel
    from ..senses.sense_training import train_senses as fit
    from ..senses.wordnet import read_wordnet

    inventory = read_wordnet(wordnet)
    elmo: Any = nlp.get_pipe("elmo")
    elmo_senses: Any = nlp.get_pipe("elmo_senses")
    embedder = get_embedder(elmo.model)
    centroids, report = fit(embedder, inventory, train, test)
    elmo_senses.model = SenseModel(inventory, centroids, identify(embedder.bilm))
    return {**report, **get_effort(start, embedder.hash_weights())}


def _tabulate(report: Dict[str, Any]) -> Tuple[List[str], List[Tuple[str, ...]]]:
    """RETURNS (Tuple): header and rows: shares of right senses."""
    from ..experiments.contexts import name_layers

    splits = [split for split in ("tune", "test") if report[split]]
    layers = report["tune"]["layers"]
    names = [*name_layers(len(layers) - 1), "average"]
    shares = {
        "first sense": lambda found: found["first"],
        "most frequent": lambda found: found["frequent"],
        **{
            f"nearest, {name}": lambda found, key=key: found["layers"][key]
            for name, key in zip(names, layers)
        },
        f"layer {report['layer']}, prior {report['prior']}": lambda found: found["chosen"],
        "the same, from forms alone": lambda found: found["forms"],
    }
    rows = [
        (name, *(f"{get(report[split]):.1%}" for split in splits)) for name, get in shares.items()
    ]
    return ["right senses", *splits], rows


def _write(
    nlp: "Language", report: Dict[str, Any], output: Path, json: Optional[Path], title: str
) -> None:
    from ..experiments.results import write_result
    from ..files import atomic_folder

    with writing(output), atomic_folder(output.resolve()) as folder:
        nlp.to_disk(folder)
    if json is not None:
        with writing(json):
            write_result(json, "senses", title, report)
