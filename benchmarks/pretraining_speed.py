"""How fast pretraining is: against the matrix products that it needs, and with two
processes against one. All in one run, on made text."""

import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import torch
import typer
from common import compare_medians, describe_machine, measure_products, print_table

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.language_model.objective import LanguageModel
from spacy_elmo.language_model.readings import make_lm_batch
from spacy_elmo.language_model.softmax import SampledSoftmax
from spacy_elmo.language_model.vocabulary import SPECIAL_WORDS, Vocabulary

N_SAMPLES = 4096
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def make_text(n_tokens: int, n_types: int = 30_000) -> list[list[str]]:
    """Zipfian words in sentences of about 25."""
    rng = random.Random(0)
    words = [f"w{i}" for i in range(n_types)]
    weights = [1 / (i + 3) for i in range(n_types)]
    sentences = []
    while n_tokens > 0:
        sentences.append(rng.choices(words, weights, k=max(3, int(rng.gauss(25, 8)))))
        n_tokens -= len(sentences[-1])
    return sorted(sentences, key=len)


def count_operations(config: BiLMConfig, n_words_per_token: float, n_chars: float) -> float:
    """Operations of a training step for each token: forward, and twice that back."""
    P, F = config.direction_width, config.n_filters
    convolutions = sum(2 * config.char_width * w * n * n_chars for w, n in config.filters)
    word = convolutions + config.n_highway * 4 * F * F + 2 * F * P
    softmax = 2 * 2 * N_SAMPLES * 0.6 * P  # about 60 % of the draws are different words
    return 3 * (config.n_operations + n_words_per_token * word + softmax)


def main(
    n_tokens: int = typer.Option(4096, help="Predictions of a step of one process"),
    seconds: float = typer.Option(40.0, help="Of each run with processes"),
    repeats: int = typer.Option(3, help="Runs of one process and of two, in turn"),
) -> None:
    """Print two tables."""
    torch.set_num_threads(1)
    print(describe_machine())
    config = BiLMConfig()
    text = make_text(n_tokens * 3)
    sentences = text[len(text) // 2 :][: n_tokens // 26]
    vocabulary = Vocabulary([*SPECIAL_WORDS, *(f"w{i}" for i in range(30_000))])
    batch = make_lm_batch(sentences, vocabulary)
    model = LanguageModel(
        BiLM(config), SampledSoftmax(config.direction_width, len(vocabulary), N_SAMPLES)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    rows = []
    for name, dtype in DTYPES.items():

        def step(dtype: torch.dtype = dtype) -> None:
            with torch.autocast("cpu", torch.bfloat16, enabled=dtype != torch.float32):
                loss = model(batch)[0]
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        limit = measure_products(dtype, 128, config.direction_width, 4 * config.cell_width)
        rate = batch.n_targets / compare_medians({name: step})[name]
        each = count_operations(config, len(batch.words) / batch.n_targets, 12)
        share = rate * each / limit
        figures = [f"{rate:,.0f}", f"{each / 1e6:.1f} M", f"{limit / 1e9:.0f} G", f"{share:.2f}"]
        rows.append([name, *figures])
    print_table(["precision", "tokens/s", "operations a token", "products, 1/s", "share"], rows)
    compare_processes(seconds, repeats)


def compare_processes(seconds: float, repeats: int) -> None:
    """Whole runs of the command, one process and two in turn."""
    if multiprocessing.cpu_count() < 2:
        return
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text.txt"
        text.write_text("\n".join(" ".join(s) + " ." for s in make_text(1_000_000)))
        rates: dict[int, list[float]] = {1: [], 2: []}
        for i in range(repeats):
            for n in rates:
                rates[n].append(run(text, Path(folder) / f"run{n}_{i}", n, seconds))
    one, two = (median(rates[n]) for n in (1, 2))
    print()
    ratio = median(b / a for a, b in zip(rates[1], rates[2], strict=True))
    print_table(
        ["one process, tokens/s", "two processes", "ratio"],
        [[f"{one:,.0f}", f"{two:,.0f}", f"{ratio:.2f}"]],
    )


def run(text: Path, output: Path, n_processes: int, seconds: float) -> float:
    """RETURNS (float): tokens per second of a run, once it is under way."""
    launch = [sys.executable, "-m"]
    if n_processes > 1:
        launch += ["torch.distributed.run", "--nproc-per-node", str(n_processes), "-m"]
    config = Path(output.parent / "config.cfg")
    config.write_text('[nlp]\nlang = "xx"\n')
    command = [*launch, "spacy", "elmo", "pretrain", str(config), str(output)]
    command += ["--paths.train", str(text), "--threads", "1", "--training.max_steps", "100000"]
    command += ["--training.log_frequency", "5", "--max-minutes", str(seconds / 60)]
    command += ["--training.batch_tokens", "8192", "--corpus.buffer_tokens", "300000"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    lines = [json.loads(line) for line in (output / "log.jsonl").read_text().splitlines()]
    return median(line["tokens_per_second"] for line in lines[1:] or lines)


if __name__ == "__main__":
    typer.run(main)
