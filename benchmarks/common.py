"""What the benchmarks share: the machine's limits, repeats, tables, training."""

import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import spacy
import torch

from spacy_elmo.checkpoints.loaders import read_config
from spacy_elmo.text.cutting import split_words


def compare_medians(
    functions: Mapping[str, Callable[[], object]], n_repeats: int = 5
) -> dict[str, float]:
    """Time functions in turn, so that a neighbour on the machine troubles all of them.

    RETURNS (dict[str, float]): seconds of a call of each, the median of several after one
    that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(n_repeats + 1):
        for name, function in functions.items():
            started = time.perf_counter()
            function()
            if turn:
                seconds[name].append(time.perf_counter() - started)
    return {name: median(found) for name, found in seconds.items()}


def read_lines(path: Path, n_tokens: int) -> list[str]:
    """RETURNS (list[str]): lines of a text that has a sentence in each, up to a number of
    words; headings of a CoNLL-U file and its annotations left out."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if path.suffix == ".conllu":
        prefix = "# text = "
        lines = [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]
    kept = []
    for line in filter(str.strip, lines):
        if n_tokens <= 0:
            break
        kept.append(line)
        n_tokens -= len(line.split())
    return kept


def tokenize(lines: list[str], lang: str = "en") -> list[list[str]]:
    """RETURNS (list[list[str]]): words of each line by spaCy's tokenizer."""
    nlp = spacy.blank(lang)
    return [split_words(nlp.tokenizer, line) for line in lines]


def measure_products(dtype: torch.dtype, n_rows: int, n_in: int, n_out: int) -> float:
    """RETURNS (float): operations per second of matrix products of a shape, multiply and
    add counted as two."""
    a, b = (torch.randn(shape).to(dtype) for shape in ((n_rows, n_in), (n_in, n_out)))
    n_operations = 2 * n_rows * n_in * n_out
    n_calls = max(1, int(1e9 / n_operations))

    def multiply() -> None:
        for _ in range(n_calls):
            torch.mm(a, b)

    return n_calls * n_operations / compare_medians({"multiply": multiply})["multiply"]


def describe_machine() -> str:
    """RETURNS (str): processor, threads and versions, for the record."""
    model = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next(line.split(":")[1].strip() for line in file if "model name" in line)
    except (OSError, StopIteration):
        model = platform.processor()
    capability = torch.backends.cpu.get_cpu_capability()
    return f"{model} ({capability}), {torch.get_num_threads()} threads, torch {torch.__version__}"


def print_table(header: list[str], rows: list[list[str]]) -> None:
    """Print a table in Markdown."""
    for line in (header, ["---"] * len(header), *rows):
        print(f"| {' | '.join(line)} |")


def set_weights(weights: str, path: str) -> dict[str, Any]:
    """weights (str): folder of a biLM; "" for the bundled one. path (str): that folder, as a config
    says it. RETURNS (dict[str, Any]): arguments of `make_config` for these weights."""
    if not weights:
        return {}
    loader = {"@misc": "spacy-elmo.CheckpointLoader.v1", "path": path}
    return {"shape": read_config(weights), "loader": loader}
