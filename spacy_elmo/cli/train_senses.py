"""`python -m spacy elmo train-senses`: a component that tells word senses apart."""

import time
from pathlib import Path
from typing import Any, Optional

import typer
from wasabi import msg, table

from .common import exit_on_error
from .outputs import require_output, require_pipeline_folder, writing


def train_senses(
    train: Path = typer.Argument(
        ..., help="Sense-annotated sentences (.jsonl)", exists=True, dir_okay=False
    ),
    wordnet: Path = typer.Argument(..., help="WordNet's folder dict", exists=True),
    output: Path = typer.Argument(..., help="Folder for the pipeline"),
    weights: str = typer.Option("", help="Folder of a biLM; the bundled one if left out"),
    test: Optional[Path] = typer.Option(
        None, help="Sentences to measure on, once", exists=True, dir_okay=False
    ),
    title: str = typer.Option("", help="What the data is called in reports"),
    lang: str = typer.Option("en", help="Language"),
    json: Optional[Path] = typer.Option(None, help="JSON file to write", dir_okay=False),
) -> None:
    """Train senses for the component elmo_senses: the nearest mean vector (table 5 of the
    paper). A tenth of the docs chooses the layer."""

    import spacy
    from tqdm import tqdm

    from ..checkpoints.loaders import pipe_config
    from ..experiments.results import get_effort, write_result
    from ..experiments.tables import tabulate_senses
    from ..layers.elmo_layers import get_embedder
    from ..senses.annotated import read_sentences
    from ..senses.sense_model import SenseModel
    from ..senses.sense_training import require_docs
    from ..senses.sense_training import train_senses as fit
    from ..senses.wordnet import read_wordnet, require_wordnet
    from ..text.corpus import make_tokenizer
    from ..util.atomic import atomic_folder

    start = time.perf_counter()
    with exit_on_error():
        # What takes a minute or an hour comes last.
        require_output(json)
        require_pipeline_folder(output)
        make_tokenizer(lang, {})
        require_wordnet(wordnet)
        tested = list(read_sentences(test)) if test is not None else []
        require_docs(read_sentences(train))
        nlp = spacy.blank(lang)
        shape = pipe_config(weights) if weights else {}
        elmo: Any = nlp.add_pipe("elmo", config={**shape, "store_layers": True})
        if weights:
            elmo.load(weights)
        pipe: Any = nlp.add_pipe("elmo_senses")
        inventory = read_wordnet(wordnet)
        embedder = get_embedder(elmo.model)
        sentences = tqdm(read_sentences(train), unit=" sentences")
        centroids, report = fit(embedder, inventory, sentences, tested)
        pipe.model = SenseModel(inventory, centroids)
        effort = get_effort(start, embedder.hash_weights())
        # Before anything is written: a full disk takes the files alone.
        cells = tabulate_senses(report)
        print(table(cells.rows, header=cells.header, divider=True))
        with writing(output), atomic_folder(output.resolve()) as folder:
            nlp.to_disk(folder)
        msg.good(f"Wrote {output}")
        if json is not None:
            with writing(json):
                write_result(json, "senses", title or train.stem, {**report, **effort})
            msg.good(f"Wrote {json}")
