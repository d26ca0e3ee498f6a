"""What questions and coreference gain from knowing which words stand in both places, and which of
ELMo's layers their LSTMs learn from best: dev scores under the same settings, one seed."""

import io
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
import typer
from common import describe_machine, print_table
from spacy import util
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from thinc.api import Config, NumpyOps, set_current_ops

from spacy_elmo.experiments.progress import RunLog
from spacy_elmo.experiments.run_settings import RunSettings
from spacy_elmo.experiments.runs import Run, make_run_config
from spacy_elmo.experiments.variants import choose_variants, get_score

PROJECT = Path(__file__).parent.parent / "projects" / "table1"
# Folder of the corpus, component, config.
TASKS = {
    "squad": ("elmo_qa", "answers.cfg"),
    "ontogum": ("elmo_coref", "coreference.cfg"),
}
PLAIN, ELMO = choose_variants("gain", 2)


class Choice(NamedTuple):
    """title (str): in the table. has_elmo (bool): whether ELMo is beside the word features.
    word_match (bool): whether the network knows which words are the same. mix (dict[str, Any]):
    keys of the listener's mix that are not the config's."""

    title: str
    has_elmo: bool
    word_match: bool
    mix: dict[str, Any] | None = None


CHOICES = [
    Choice("without ELMo, words not compared", False, False),
    Choice("without ELMo", False, True),
    Choice("ELMo, words not compared", True, False),
    Choice("all layers, normalised", True, True, {"output": "all", "mix_layer_norm": True}),
    Choice("a mix of normalised ones", True, True, {"output": "mix", "mix_layer_norm": True}),
    Choice("a mix", True, True, {"output": "mix", "mix_layer_norm": False}),
]


def main(
    corpora: Path = typer.Argument(
        ..., help="Folder with squad and ontogum, each with .spacy files"
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
        component, config = TASKS[name]
        settings = RunSettings(
            str(corpora / name),
            component,
            max_steps=max_steps,
            eval_frequency=eval_frequency,
            config=str(PROJECT / config),
        )
        curves = {choice.title: train_one(choice, settings, cache) for choice in CHOICES}
        steps = [f"{point['step']:,}" for point in next(iter(curves.values()))]
        rows = [
            [title, *(f"{100 * point['score']:.1f}" for point in curve)]
            for title, curve in curves.items()
        ]
        print_table([f"{get_score(component)}, dev, after updates", *steps], rows)


def make_choice(choice: Choice, settings: RunSettings, cache: Path) -> Config:
    """RETURNS (Config): That of the settings, changed."""
    config = make_run_config(Run(ELMO if choice.has_elmo else PLAIN, 1.0, 0), settings)
    model = config["components"][settings.component]["model"]
    model["word_match"] = choice.word_match
    if choice.has_elmo:
        model["tok2vec"]["input"].update(choice.mix or {})
        block = config["initialize"].setdefault("components", {}).setdefault("elmo", {})
        block["activation_cache"] = {"@misc": "spacy-elmo.ActivationCache.v1", "path": str(cache)}
    config["paths"]["train"] = str(Path(settings.corpus) / "train.spacy")
    return config


def train_one(choice: Choice, settings: RunSettings, cache: Path) -> list[dict[str, Any]]:
    """RETURNS (list[dict[str, Any]]): Of each evaluation on dev "step" and "score"."""
    log = RunLog("run", get_score(settings.component), lambda progress: None)
    config = make_choice(choice, settings, cache)
    config["training"]["logger"] = log.register()
    with TemporaryDirectory() as folder:
        nlp = init_nlp(util.load_config_from_str(config.to_str(interpolate=False)))
        train(nlp, Path(folder), stdout=io.StringIO(), stderr=io.StringIO())
    return log.curve


if __name__ == "__main__":
    typer.run(main)
