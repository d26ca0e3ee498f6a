"""What word dropout, normalised layers and the place of static vectors bring to the presets
`word_features` and `static_vectors`: dev and test scores under the same settings."""

from pathlib import Path
from typing import Any, NamedTuple

import torch
import typer
from common import describe_machine, print_table, set_weights, train_config
from spacy.training import Corpus
from thinc.api import Config, NumpyOps, set_current_ops

from spacy_elmo.experiments.variants import get_score
from spacy_elmo.pipeline.presets import make_config

PLAIN_LAYERS = {"mix_layer_norm": False, "mix_dropout": 0.0}


class Choice(NamedTuple):
    """What differs from a preset.

    title (str): in the table.
    preset (str): its name.
    tok2vec (dict[str, Any]): keys of the `ElmoTok2Vec`.
    mix (dict[str, Any]): keys of its listener.
    inside (bool): whether static vectors are among the word features, not beside them.
    """

    title: str
    preset: str
    tok2vec: dict[str, Any] | None = None
    mix: dict[str, Any] | None = None
    inside: bool = False


WIDE = {"encode": {"width": 256, "depth": 2}}
CHOICES = [
    Choice("neither", "word_features", {"word_dropout": 0.0}, PLAIN_LAYERS),
    Choice("word dropout", "word_features", None, PLAIN_LAYERS),
    Choice("word dropout, layers normalised, with dropout: the preset", "word_features"),
    Choice("the same, encoder 256 wide, half as deep", "word_features", WIDE),
    Choice("that encoder without word dropout", "word_features", {**WIDE, "word_dropout": 0.0}),
    Choice("static vectors beside: the preset", "static_vectors"),
    Choice("static vectors beside, that encoder", "static_vectors", WIDE),
    Choice(
        "static vectors among the features, the same encoder", "static_vectors", WIDE, None, True
    ),
]


def main(
    corpus: Path = typer.Argument(..., help="Folder with train.spacy, dev.spacy and test.spacy"),
    component: str = typer.Option("ner", help="Factory of the component to train"),
    vectors: str = typer.Option("", help="Pipeline with static vectors; left out without"),
    max_steps: int = typer.Option(2000, help="Updates"),
    patience: int = typer.Option(800, help="Updates without a better dev score"),
    seed: int = typer.Option(0),
    weights: str = typer.Option("", help="Folder of a biLM; the bundled one if left out"),
    choices: str = typer.Option("", help="Rows, counted from 1, with commas; all if left out"),
    cache: Path = typer.Option(..., help="Folder for the biLM's layers"),
) -> None:
    """Print a table."""
    torch.set_num_threads(1)
    set_current_ops(NumpyOps(use_blis=False))
    print(describe_machine())
    rows = []
    numbers = [int(number) for number in choices.split(",") if number]
    for number, choice in enumerate(CHOICES, 1):
        if number in (numbers or [number]) and (choice.preset == "word_features" or vectors):
            config = make_choice(choice, component, vectors, cache, weights)
            config["training"].update(max_steps=max_steps, patience=patience)
            config["system"]["seed"] = seed
            rows.append([choice.title, *train_one(config, corpus, component)])
    print_table(["", f"{get_score(component)}, dev", "test", "updates"], rows)


def make_choice(
    choice: Choice, component: str, vectors: str, cache: Path, weights: str = ""
) -> Config:
    """RETURNS (Config): The preset's, changed, without the paths of a corpus."""
    paths = {"vectors": vectors} if choice.preset == "static_vectors" else {}
    settings = set_weights(weights, weights)
    config = make_config(choice.preset, [component], paths=paths, cache=str(cache), **settings)
    tok2vec = config["components"][component]["model"]["tok2vec"]
    changed = Config(tok2vec).merge(choice.tok2vec or {})
    changed["input"].update(choice.mix or {})
    if choice.inside:
        changed["vectors"] = None
        changed["embed"]["include_static_vectors"] = True
    config["components"][component]["model"]["tok2vec"] = changed
    return config


def train_one(config: Config, corpus: Path, component: str) -> tuple[str, str, str]:
    """RETURNS (tuple[str, str, str]): Scores on dev and test, as percent, of the best pipeline on
    dev, and the update that it is of."""
    score = get_score(component)
    config["paths"].update(train=str(corpus / "train.spacy"), dev=str(corpus / "dev.spacy"))
    best, curve = train_config(config, score)
    test = best.evaluate(list(Corpus(corpus / "test.spacy")(best)))
    top = max(curve, key=lambda point: point["score"])
    return f"{100 * top['score']:.2f}", f"{100 * test[score]:.2f}", f"{top['step']:,}"


if __name__ == "__main__":
    typer.run(main)
