"""Which shape learns most from little: short pretraining runs that differ in one thing.

All read the same text, in the same order unless they cut it otherwise, with the same words
to predict and the same schedule. All are scored exactly, by sentences, which favours
training on sentences. Short runs favour what learns fast: look at the large differences.
"""

import re
import shutil
from pathlib import Path
from typing import Any

import srsly
import torch
import typer
from common import describe_machine, print_table
from confection import Config

from spacy_elmo.checkpoints.loaders import read_config
from spacy_elmo.language_model.evaluation import evaluate_checkpoint
from spacy_elmo.pretraining.config_files import load_config, make_pretraining_config
from spacy_elmo.pretraining.run import pretrain
from spacy_elmo.pretraining.words import COUNTS_FILE, VOCAB_FILE

WIDE = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
NARROW = [[1, 16], [2, 16], [3, 32], [4, 64]]
# The shape that is changed: the first bundled model's, which had a projection.
SHAPE: dict[str, Any] = {
    "width": 256,
    "cell_width": 512,
    "projection": True,
    "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 128]],
}
# Name -> section -> what is other.
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "nothing changed": {},
    "filters of the paper's small shape": {"bilm": {"filters": WIDE}},
    "128 filters": {"bilm": {"filters": NARROW}},
    "cells 256": {"bilm": {"cell_width": 256}},
    "cells 1024": {"bilm": {"cell_width": 1024}},
    "depth 1": {"bilm": {"depth": 1}},
    "depth 3": {"bilm": {"depth": 3}},
    "width 128, cells 1024": {"bilm": {"width": 128, "cell_width": 1024}},
    "dropout 0.1": {"training": {"dropout": 0.1}},
    "no windows": {"corpus": {"window_share": 0.0}},
    "windows alone": {"corpus": {"window_share": 1.0}},
    "clips at 3": {"bilm": {"cell_clip": 3.0, "proj_clip": 3.0}},
    "1,024 samples": {"training": {"softmax": {"kind": "sampled", "n_samples": 1024}}},
    "adaptive softmax": {"training": {"softmax": {"kind": "adaptive"}}},
    "learning rate 0.001": {"training": {"learn_rate": 0.001}},
    "learning rate 0.006": {"training": {"learn_rate": 0.006}},
    "full softmax": {"training": {"softmax": {"kind": "full"}}},
}


def main(
    text: Path = typer.Argument(..., help="Folder with text to train on"),
    dev: Path = typer.Argument(..., help="Text to score, which is not in it"),
    vocabulary: Path = typer.Argument(..., help="File with the words to predict"),
    work: Path = typer.Argument(..., help="Folder for the runs; goes on where it was"),
    steps: int = typer.Option(100, help="Of each run"),
    batch_tokens: int = typer.Option(4096),
    sentences: int = typer.Option(1000, help="To score"),
    threads: int = typer.Option(1),
) -> None:
    """Print a table, the best first."""
    torch.set_num_threads(threads)
    print(describe_machine())
    options = {"steps": steps, "batch_tokens": batch_tokens, "sentences": sentences}
    results = []
    for name, changes in VARIANTS.items():
        result = work / f"{make_slug(name)}.json"
        if not result.exists():
            folder = train(name, changes, text, vocabulary, work, steps, batch_tokens)
            scores = evaluate_checkpoint(
                folder / "model-last", str(dev), cut="sentences", limit=sentences
            )
            found = {
                "name": name,
                "perplexity": scores["geometric_mean"],
                "operations": read_config(folder / "model-last").n_operations,
                "options": options,
            }
            srsly.write_json(result, found)
        results.append(srsly.read_json(result))
        if results[-1]["options"] != options:
            raise typer.BadParameter(f"{result} has other options: {results[-1]['options']}")
        print(results[-1], flush=True)
    results.sort(key=lambda found: found["perplexity"])
    print_table(
        ["run", "exact perplexity", "operations a token, LSTM"],
        [
            [found["name"], f"{found['perplexity']:.1f}", f"{found['operations'] / 1e6:.1f} M"]
            for found in results
        ],
    )


def make_slug(name: str) -> str:
    """RETURNS (str): of a run's files."""
    return re.sub(r"\W+", "_", name)


def train(
    name: str,
    changes: dict[str, dict[str, Any]],
    text: Path,
    vocabulary: Path,
    work: Path,
    steps: int,
    batch_tokens: int,
) -> Path:
    """RETURNS (Path): folder of the run."""
    config = make_config(changes, steps, batch_tokens)
    config["paths"]["train"] = str(text)
    config["corpus"]["vocabulary"] = str(vocabulary)
    folder, first = work / make_slug(name), work / make_slug(next(iter(VARIANTS)))
    folder.mkdir(parents=True, exist_ok=True)
    # Counted once; a run that cuts the text otherwise counts for itself.
    for kept in (COUNTS_FILE, VOCAB_FILE):
        if (first / kept).exists() and not (folder / kept).exists():
            shutil.copy(first / kept, folder)
    config.to_disk(folder / "run.cfg", interpolate=False)
    pretrain(load_config(folder / "run.cfg"), folder, resume=True)
    return folder


def make_config(changes: dict[str, dict[str, Any]], steps: int, batch_tokens: int) -> Config:
    """RETURNS (Config): of a run, without its text and words."""
    config = make_pretraining_config()
    config["bilm"].update(SHAPE)
    config["corpus"]["buffer_tokens"] = 200_000
    config["training"].update(
        max_steps=steps, batch_tokens=batch_tokens, learn_rate=0.003, precision="bf16",
        warmup_steps=steps // 5, decay_share=0.5,
    )  # fmt: skip
    for section, values in changes.items():
        config[section].update(values)
    return config


if __name__ == "__main__":
    typer.run(main)
