"""Entities by the same small biLSTM on the frozen vectors of biLMs and of a transformer: which part
of the distance between two of them does a third one close?

Of the transformer, one layer or all side by side are read: what is best on dev after some updates
with the first seed; of a biLM all. Then all seeds are trained, and test is read, once.
"""

from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import srsly
import torch
import typer
from common import describe_machine, print_table, show_mean
from numpy.typing import NDArray
from probe_biLM import ENTITIES, embed, fit_and_score, read_docs
from spacy.tokens import Doc

from spacy_elmo.checkpoints.loaders import load_embedder
from spacy_elmo.pretraining.transformer_teacher import load_encoder

Inputs = dict[str, list[NDArray]]
# Until the choice is made.
TRIAL_UPDATES = 800


class Choice(NamedTuple):
    """What was best on dev. dev, test (list[float]): F1 of whole entities by seed, percent."""

    vectors: str
    dev: list[float]
    test: list[float]


def main(
    corpora: Path = typer.Argument(..., help="Folder of projects/tasks/convert.py"),
    bilms: list[str] = typer.Argument(
        ...,
        help="Folders of biLMs, with a name to print (NAME=FOLDER) or without; the first one is "
        "what the others are measured from",
    ),
    transformer: Path = typer.Option(..., help="Folder with MiniLM-L6"),
    tasks: str = typer.Option(",".join(ENTITIES), help="Names, with commas"),
    layers: int = typer.Option(6, help="Of the transformer"),
    updates: int = typer.Option(1600),
    seeds: int = typer.Option(3),
    output: Path = typer.Option(None, help="JSON file to write"),
) -> None:
    """Print a table for each task."""
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    for task in tasks.split(","):
        data = read_docs(corpora, task, None, ("train", "dev", "test"))
        choices = {}
        for bilm in bilms:
            name, _, folder = bilm.rpartition("=")
            name, embedder = name or folder, load_embedder(folder)
            inputs = {split: embed(embedder, docs) for split, docs in data.items()}
            choices[name] = choose({"all layers": inputs}, data, updates, seeds)
            print(task, name, choices[name], flush=True)
        read = read_transformer(transformer, layers, data)
        choices[transformer.name] = choose(read, data, updates, seeds)
        print_choices(task, choices)
        found[task] = {name: choice._asdict() for name, choice in choices.items()}
        if output is not None:
            srsly.write_json(output, {"machine": describe_machine(), "tasks": found})


def read_transformer(folder: Path, n_layers: int, data: dict[str, list[Doc]]) -> dict[str, Inputs]:
    """RETURNS (dict[str, Inputs]): the vectors of each layer but the words' own, and of all of them
    side by side."""
    found: dict[str, Inputs] = {}
    for layer in range(1, n_layers + 1):
        encoder = load_encoder("transformer", str(folder), layer)
        found[f"layer {layer}"] = {}
        for split, docs in data.items():
            sequences = [[token.text for token in doc] for doc in docs]
            vectors, known = encoder.read(sequences, torch.device("cpu"))
            flat = np.zeros((sum(map(len, docs)), encoder.width), "float16")
            flat[known] = vectors.numpy()
            ends = np.cumsum([len(doc) for doc in docs])[:-1]
            found[f"layer {layer}"][split] = np.split(flat, ends)
    each = list(found.values())
    found["all layers"] = {
        split: [np.concatenate(rows, axis=1) for rows in zip(*(own[split] for own in each))]
        for split in data
    }
    return found


def choose(
    variants: dict[str, Inputs], data: dict[str, list[Doc]], n_updates: int, n_seeds: int
) -> Choice:
    """RETURNS (Choice): what is best on dev, by one seed; then all seeds of it."""
    tried = {}
    if len(variants) > 1:
        for name, inputs in variants.items():
            tried[name] = fit_and_score(inputs, data, TRIAL_UPDATES, 0)["dev"]
            print(name, f"{tried[name]:.1f}", flush=True)
    best = max(tried, key=lambda name: tried[name]) if tried else next(iter(variants))
    scores = [fit_and_score(variants[best], data, n_updates, seed) for seed in range(n_seeds)]
    dev, test = ([each[split] for each in scores] for split in ("dev", "test"))
    return Choice(best, dev, test)


def print_choices(task: str, choices: dict[str, Choice]) -> None:
    """Print what was chosen, and the share of the distance from the first to the last."""
    first, last = ([*choices.values()][i] for i in (0, -1))
    rows = []
    for name, choice in choices.items():
        shares = [
            (mean(own) - mean(low)) / (mean(high) - mean(low))
            for own, low, high in zip(choice[1:], first[1:], last[1:], strict=True)
        ]
        row = [name, choice.vectors, show_mean(choice.dev), show_mean(choice.test)]
        rows.append([*row, *(f"{share:.2f}" for share in shares)])
    print(f"\n{task}, {describe_machine()}\n")
    print_table(["vectors", "which", "dev", "test", "share, dev", "share, test"], rows)


if __name__ == "__main__":
    typer.run(main)
