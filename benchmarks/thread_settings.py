"""The effect of environment variables on a pipeline of several libraries: a tagger of the preset
`word_features`, whose biLM runs in torch and whose own layers in NumPy.

Each setting has separate processes, in turn, so that a neighbour on the machine troubles all of
them. All texts are new: what a user's are.
"""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import NamedTuple

import spacy
import torch
import typer
from common import describe_machine, print_table
from rivals.runs import KEPT, QUIET, limit_threads
from rivals.speed import Setting, time_pipe
from spacy.tokens import DocBin
from spacy.training import Example
from spacy.util import load_model_from_config
from thinc.api import NumpyOps, set_current_ops

from spacy_elmo import make_config
from spacy_elmo.layers import scalar_mix


class Way(NamedTuple):
    """blis (bool): whether Thinc has its default products. environment (dict[str, str]): of the
    process. parts (bool): whether `ElmoTok2Vec` reads some docs of a batch at a time."""

    blis: bool
    environment: dict[str, str]
    parts: bool = True


SETTINGS = {
    "Thinc's default products": Way(True, {}),
    "NumPy's products": Way(False, {}),
    "and its threads do not wait in a loop": Way(False, QUIET),
    "and freed memory is kept": Way(False, {**QUIET, **KEPT}),
    "NumPy's products, all docs of a batch at once": Way(False, {}, parts=False),
}
_WORKER = "--worker"
# Docs to find labels in; they are not timed.
_N_EXAMPLES = 100


def measure(corpus: Path, tokens: int, batch_size: int, way: Way) -> list[float]:
    """RETURNS (list[float]): tokens a second, of parts of a corpus."""
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    set_current_ops(NumpyOps(use_blis=way.blis))
    if not way.parts:
        scalar_mix.PART_TOKENS = sys.maxsize
    nlp = load_model_from_config(make_config("word_features", ["tagger"]), auto_fill=True)
    docs = list(DocBin().from_disk(corpus).get_docs(nlp.vocab))
    nlp.initialize(lambda: [Example(doc.copy(), doc) for doc in docs[:_N_EXAMPLES]])
    parts: list[list[str]] = [[]]
    sizes = [0]
    for doc in docs[_N_EXAMPLES:]:
        parts[-1].append(doc.text)
        sizes[-1] += len(doc)
        if sizes[-1] >= tokens:
            parts.append([])
            sizes.append(0)
    rates: list[float] = []
    for texts, size in zip(parts[:-1], sizes):
        rates.append(size / time_pipe(nlp, texts, Setting(batch_size)))
    # The first two warm up.
    return rates[2:]


def main(
    corpus: Path = typer.Argument(..., help="A .spacy file with tags"),
    tokens: int = typer.Option(3500, help="Of a part"),
    batch_size: int = typer.Option(256, help="Texts"),
    repeats: int = typer.Option(3),
    threads: int = typer.Option(2),
    worker: str = typer.Option("", hidden=True),
) -> None:
    """Print a table: medians over all parts and repeats."""
    if worker:
        rates = measure(corpus, tokens, batch_size, SETTINGS[worker])
        print("rates", *rates)
        return
    print(describe_machine(), f"spaCy {spacy.__version__}")
    # Without what is tried, wherever it comes from.
    base = {k: v for k, v in limit_threads(threads).items() if k not in {*QUIET, *KEPT}}
    found: dict[str, list[float]] = {name: [] for name in SETTINGS}
    for _ in range(repeats):
        for name, way in SETTINGS.items():
            command = [sys.executable, *sys.argv, _WORKER, name]
            done = subprocess.run(
                command, env={**base, **way.environment}, check=True, capture_output=True, text=True
            )
            (line,) = (x for x in done.stdout.splitlines() if x.startswith("rates"))
            found[name] += map(float, line.split()[1:])
    first = median(next(iter(found.values())))
    rows = [[name, f"{median(r):,.0f}", f"{median(r) / first:.2f}"] for name, r in found.items()]
    print_table(["setting", "tokens/s", "times the first"], rows)


if __name__ == "__main__":
    typer.run(main)
