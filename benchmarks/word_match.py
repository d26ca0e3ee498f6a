"""What questions, coreference and entailment gain from knowing which words stand in both places,
and which of ELMo's layers their LSTMs learn from best: dev scores under the same settings, one
seed."""

from pathlib import Path
from typing import Any, NamedTuple

import torch
import typer
from common import describe_machine, print_table, train_config
from table1_tasks import make_settings, make_task_config
from thinc.api import Config, NumpyOps, set_current_ops

from spacy_elmo.experiments.run_settings import RunSettings
from spacy_elmo.experiments.variants import choose_variants, get_score

# Those whose networks compare words.
TASKS = ("squad", "ontogum", "snli")
PLAIN, ELMO = choose_variants("gain", 2)


class Choice(NamedTuple):
    """title (str): in the table. has_elmo (bool): whether ELMo is beside the word features.
    word_match (bool): whether the network knows which words are the same. mix (dict[str, Any]):
    keys of the listener's mix."""

    title: str
    has_elmo: bool
    word_match: bool
    mix: dict[str, Any] | None = None


ALL = {"output": "all", "mix_layer_norm": True, "mix_dropout": 0.3}
AS_THEY_ARE = {"output": "all", "mix_layer_norm": False, "mix_dropout": 0.0}
NORMALISED = {"output": "mix", "mix_layer_norm": True, "mix_dropout": 0.3}
MIX = {"output": "mix", "mix_layer_norm": False, "mix_dropout": 0.3}
CHOICES = [
    Choice("without ELMo, words not compared", False, False),
    Choice("without ELMo", False, True),
    Choice("ELMo, all layers, normalised, words not compared", True, False, ALL),
    Choice("ELMo, a mix of normalised ones, words not compared", True, False, NORMALISED),
    Choice("ELMo, a mix, words not compared", True, False, MIX),
    Choice("ELMo, all layers, normalised", True, True, ALL),
    Choice("ELMo, all layers, as they are", True, True, AS_THEY_ARE),
    Choice("ELMo, a mix of normalised ones", True, True, NORMALISED),
    Choice("ELMo, a mix", True, True, MIX),
]


def main(
    corpora: Path = typer.Argument(
        ..., help="Folder with squad, ontogum and snli, each with .spacy files"
    ),
    cache: Path = typer.Option(..., help="Folder for the biLM's layers"),
    tasks: str = typer.Option(",".join(TASKS), help="Names with commas"),
    max_steps: int = typer.Option(600, help="Updates"),
    eval_frequency: int = typer.Option(200, help="Updates between two evaluations"),
) -> None:
    """Print a table for each task."""
    torch.set_num_threads(1)
    set_current_ops(NumpyOps(use_blis=False))
    print(describe_machine())
    for name in tasks.split(","):
        settings = make_settings(name, corpora, max_steps=max_steps, eval_frequency=eval_frequency)
        score = get_score(settings.component)
        curves = {}
        for choice in CHOICES:
            config = make_choice(choice, settings, cache)
            _, curves[choice.title] = train_config(config, score)
        steps = [f"{point['step']:,}" for point in next(iter(curves.values()))]
        rows = [
            [title, *(f"{100 * point['score']:.1f}" for point in curve)]
            for title, curve in curves.items()
        ]
        print_table([f"{score}, dev, after updates", *steps], rows)


def make_choice(choice: Choice, settings: RunSettings, cache: Path) -> Config:
    """RETURNS (Config): That of the settings, changed."""
    config = make_task_config(ELMO if choice.has_elmo else PLAIN, settings, cache)
    model = config["components"][settings.component]["model"]
    model["word_match"] = choice.word_match
    if choice.has_elmo:
        # Before the encoder alone, whatever the config has behind it.
        model["tok2vec"]["output"] = None
        model["tok2vec"]["input"].update(choice.mix or {})
    return config


if __name__ == "__main__":
    typer.run(main)
