"""How fast should a mix learn? Dev scores of a task with learned mixes at several learning rates,
beside fixed choices and all layers side by side, under the same settings."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import typer
from common import describe_machine, print_table
from thinc.api import NumpyOps, set_current_ops

from spacy_elmo.experiments.run_settings import RunSettings
from spacy_elmo.experiments.runs import Run, run_one
from spacy_elmo.experiments.variants import Variant
from spacy_elmo.pipeline import architectures

FIXED: dict[str, dict[str, Any]] = {
    "last layer": {"output": "top"},
    "average": {"output": "average"},
}
WIDE: dict[str, dict[str, Any]] = {
    "side by side": {"output": "all", "mix_layer_norm": False, "mix_dropout": 0.0},
    "side by side, normalised, with dropout: the preset": {"output": "all"},
}


def main(
    corpus: Path = typer.Argument(..., help="Folder with train.spacy and dev.spacy"),
    component: str = typer.Option("tagger", help="Factory of the component to train"),
    factors: str = typer.Option("1,8,32,128", help="Learning rates of mixes; with commas"),
    seeds: str = typer.Option("0", help="With commas"),
    max_steps: int = typer.Option(1000, help="Updates"),
    weights: str = typer.Option("", help="Folder of a biLM, or its name"),
    cache: Path = typer.Option(..., help="Folder for the biLM's layers"),
) -> None:
    """Print a table."""
    torch.set_num_threads(1)
    set_current_ops(NumpyOps(use_blis=False))
    print(describe_machine())
    settings = RunSettings(str(corpus), component, "en", weights, max_steps, 0, 100)
    rows = []
    for name, mix, factor in list_choices([float(factor) for factor in factors.split(",")]):
        # The factor belongs to an architecture; configs cannot change it.
        architectures.MIX_LEARN_RATE_FACTOR = factor
        runs = [Run(Variant("run", name, ("input",), mix), 1.0, int(s)) for s in seeds.split(",")]
        with TemporaryDirectory() as folder:
            results = [run_one(run, settings, Path(folder), cache, ignore) for run in runs]
        scores = ", ".join(f"{100 * result['dev'][result['score']]:.2f}" for result in results)
        shares = [f"{share:.2f}" for share in results[0]["mixes"][-1]["shares"]]
        rows.append([name, scores, " ".join(shares)])
    print_table(["layers", f"{results[0]['score']}, dev", "shares"], rows)


def list_choices(factors: list[float]) -> list[tuple[str, dict[str, Any], float]]:
    """factors (list[float]): learning rates of mixes. RETURNS (list[tuple[str, dict[str, Any],
    float]]): title, keys of the listener's mix, and its rate."""
    fixed = [(name, mix, 1.0) for name, mix in {**FIXED, **WIDE}.items()]
    learned = [(f"learned, {factor:g} times", {"output": "mix"}, factor) for factor in factors]
    return fixed + learned


def ignore(progress: object) -> None:
    """The table is enough."""


if __name__ == "__main__":
    typer.run(main)
