"""Run `python -m spacy elmo experiment` for the tasks of table 1 or table 3."""

from pathlib import Path
from typing import NamedTuple

import typer

from spacy_elmo.cli import elmo_cli

CONFIGS = Path(__file__).parent


class Task(NamedTuple):
    """corpus (str): folder of convert.py. component (str): factory. config (str): in this folder.
    title (str): for tables. steps, patience, frequency (int): updates at most, without a better
    score, and between evaluations."""

    corpus: str
    component: str
    config: str
    title: str
    steps: int = 3000
    patience: int = 600
    frequency: int = 200


ANSWERS = {"steps": 3600, "patience": 600, "frequency": 300}
TASKS = {
    "wnut17": Task("wnut17", "ner", "entities", "WNUT 2017, entities"),
    "gum": Task("gum", "ner", "entities", "GUM, named entities", 10000, 1200),
    "litbank": Task("litbank", "spancat", "nested", "LitBank, nested entities"),
    "polarity": Task("polarity", "textcat", "sentiment", "Sentence polarity"),
    "snli": Task("snli", "elmo_entailment", "entailment", "SNLI, small"),
    "propbank": Task("propbank", "elmo_srl", "roles", "PropBank on EWT, roles", 8000, 1200, 400),
    "ontogum": Task("ontogum", "elmo_coref", "coreference", "OntoGUM, coreference", 1500, 500, 100),
    "litbank_coref": Task(
        "litbank_coref",
        "elmo_coref",
        "coreference_singletons",
        "LitBank, coreference",
        3000,
        600,
        100,
    ),
    "squad": Task("squad", "elmo_qa", "answers", "SQuAD, a part of its dev set", **ANSWERS),
    "squad_unanswered": Task(
        "squad_unanswered",
        "elmo_qa",
        "answers_or_none",
        "SQuAD, a third without an answer",
        **ANSWERS,
    ),
}
# Tasks of table 3: those that attend, with one schedule for all.
TABLE3 = ("squad", "snli", "propbank")


def main(
    table: str = typer.Argument(..., help="table1 or table3"),
    work: Path = typer.Argument(..., help="Folder with corpus/, for results/ and cache/"),
    weights: str = typer.Option("", help="Folder of a biLM; the bundled one if left out"),
    vectors: str = typer.Option("", help="Pipeline with static vectors, for table1"),
    tasks: str = typer.Option("", help="Names with commas; all if left out"),
    seeds: str = typer.Option("0,1,2"),
    steps: int = typer.Option(0, help="Updates at most; 0 for those of each task"),
    n_jobs: int = typer.Option(2, help="Runs at once"),
) -> None:
    """Write WORK/results/TABLE_TASK for each task."""
    known = list(TASKS) if table == "table1" else TABLE3
    for name in tasks.split(",") if tasks else known:
        if name not in known:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(known)}")
        task = TASKS[name]
        if table == "table3":
            task = task._replace(steps=1000, patience=600, frequency=200)
        suite = {"table1": "vectors", "table3": "placement"}[table]
        command = ["experiment", suite]
        command += [str(work / "corpus" / task.corpus), str(work / "results" / f"{table}_{name}")]
        options = {
            "component": task.component,
            "config": CONFIGS / f"{task.config}.cfg",
            "title": task.title,
            "weights": weights,
            "seeds": seeds,
            "cache": work / "cache",
            "n-jobs": n_jobs,
            "max-steps": steps or task.steps,
            "patience": task.patience,
            "eval-frequency": min(task.frequency, steps or task.frequency),
        }
        if table == "table1":
            options["vectors"] = vectors
        command += [f"--{option}={value}" for option, value in options.items()]
        elmo_cli(command, standalone_mode=False)


if __name__ == "__main__":
    typer.run(main)
