"""Whether other settings would be better for the tasks of the paper's table 1, above all without
ELMo: dev scores of the configs in projects/table1, and of the same with one setting changed, one
seed."""

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import torch
import typer
from common import describe_machine, print_table, train_config
from spacy import registry
from table1_tasks import TASKS, make_settings, make_task_config
from thinc.api import Config, NumpyOps, set_current_ops

from spacy_elmo.experiments.run_settings import RunSettings
from spacy_elmo.experiments.variants import choose_variants, get_score

SIDES = {variant.name: variant for variant in choose_variants("gain", 2)}


def change_nothing(config: Config, model: dict[str, Any]) -> None:
    """As in projects/table1."""


def scale_rate(factor: float) -> Callable[[Config, dict[str, Any]], None]:
    """factor (float): of the learning rate."""

    def change(config: Config, model: dict[str, Any]) -> None:
        config["training"]["optimizer"]["learn_rate"] *= factor

    return change


def drop_more(config: Config, model: dict[str, Any]) -> None:
    """Of word features."""
    config["training"]["dropout"] = 0.3


def widen_features(config: Config, model: dict[str, Any]) -> None:
    """Of words."""
    model["tok2vec"]["embed"]["width"] *= 2


def widen_network(config: Config, model: dict[str, Any]) -> None:
    """The task's own, or its encoder."""
    block = model["tok2vec"].get("encode") or model
    make = registry.get("architectures", block["@architectures"])
    block["width"] = 2 * block.get("width", signature(make).parameters["width"].default)


CHOICES = {
    "the config": change_nothing,
    "twice the learning rate": scale_rate(2),
    "half the learning rate": scale_rate(0.5),
    "dropout of word features 0.3": drop_more,
    "word features twice as wide": widen_features,
    "network twice as wide": widen_network,
}


def main(
    corpora: Path = typer.Argument(..., help="Folder with a folder of .spacy files for each task"),
    cache: Path = typer.Option(..., help="Folder for the biLM's layers"),
    tasks: str = typer.Option(",".join(TASKS), help="Names with commas"),
    sides: str = typer.Option("plain", help='"plain", "elmo" or both with a comma'),
    max_steps: int = typer.Option(1000, help="Updates at most"),
    patience: int = typer.Option(600, help="Updates without a better dev score"),
    eval_frequency: int = typer.Option(200, help="Updates between two evaluations"),
) -> None:
    """Print a table for each task."""
    torch.set_num_threads(1)
    set_current_ops(NumpyOps(use_blis=False))
    print(describe_machine(), flush=True)
    for name in tasks.split(","):
        settings = make_settings(
            name, corpora, max_steps=max_steps, patience=patience, eval_frequency=eval_frequency
        )
        score = get_score(settings.component)
        rows = []
        for title, change in CHOICES.items():
            row = [title]
            for side in sides.split(","):
                _, curve = train_config(make_choice(side, change, settings, cache), score)
                best = max(curve, key=lambda point: point["score"])
                row.append(f"{100 * best['score']:.1f} ({best['step']:,})")
            print(f"{name}: {', '.join(row)}", flush=True)
            rows.append(row)
        heads = [f"{score}, dev, {SIDES[side].title} (update)" for side in sides.split(",")]
        print_table([name, *heads], rows)


def make_choice(
    side: str, change: Callable[[Config, dict[str, Any]], None], settings: RunSettings, cache: Path
) -> Config:
    """RETURNS (Config): That of the settings, changed."""
    config = make_task_config(SIDES[side], settings, cache)
    change(config, config["components"][settings.component]["model"])
    return config


if __name__ == "__main__":
    typer.run(main)
