"""Train and evaluate each task with ELMo and without, for several seeds. Resumes."""

import subprocess
import sys
from pathlib import Path

import srsly
import typer
from tasks import ENGLISH, choose

KINDS = ("elmo", "plain")


def main(
    configs: Path = typer.Argument(..., help="Folder with the configs"),
    corpus: Path = typer.Argument(..., help="Folder with the .spacy files"),
    output: Path = typer.Argument(..., help="Folder for pipelines and scores"),
    seeds: str = typer.Option("0,1,2", help="Seeds"),
    tasks: str = typer.Option(ENGLISH, help="Tasks"),
) -> None:
    """Write OUTPUT/<task>_<kind>_<seed>.json: dev scores of the best step (that is the
    choice), and the test scores of that pipeline."""
    output.mkdir(parents=True, exist_ok=True)
    for seed in seeds.split(","):
        for task in choose(tasks):
            for kind in KINDS:
                scores = output / f"{task}_{kind}_{seed}.json"
                if not scores.exists():
                    run(configs / f"{task}_{kind}.cfg", corpus / task, scores, seed)


def run(config: Path, corpus: Path, scores: Path, seed: str) -> None:
    """Train one pipeline, evaluate it once on the test split, and note the scores."""
    pipeline = scores.with_suffix("")
    train = ["train", str(config), "--output", str(pipeline), "--system.seed", seed]
    train += [
        "--paths.train",
        str(corpus / "train.spacy"),
        "--paths.dev",
        str(corpus / "dev.spacy"),
    ]
    call_spacy("init", "fill-config", str(config), str(config))
    call_spacy(*train)
    best = pipeline / "model-best"
    result = pipeline / "test.json"
    call_spacy("evaluate", str(best), str(corpus / "test.spacy"), "--output", str(result))
    dev = srsly.read_json(best / "meta.json")["performance"]
    partial = scores.with_suffix(".partial")
    srsly.write_json(partial, {"dev": dev, "test": srsly.read_json(result), "seed": int(seed)})
    partial.rename(scores)


def call_spacy(*arguments: str) -> None:
    """Run a command of spaCy in a process of its own."""
    subprocess.run([sys.executable, "-m", "spacy", *arguments], check=True)


if __name__ == "__main__":
    typer.run(main)
