"""Bulk embedding by one worker and by several, and what that makes of a billion sentences.

python benchmarks/embed_scaling.py TEXT --workers 1,2 --engine ray
"""

import shutil
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import typer
from wasabi import table

from spacy_elmo.embed.job import Engine, embed_files, run_local
from spacy_elmo.embed.output import read_manifest
from spacy_elmo.embed.pipeline import EmbedSettings
from spacy_elmo.embed.ray_engine import run_ray
from spacy_elmo.embed.readers import find_inputs, plan_tasks
from spacy_elmo.files import write_json
from spacy_elmo.utils import read_peak_memory

_BILLION = 1_000_000_000


def main(
    text: str = typer.Argument(..., help="File, folder or glob"),
    workers: str = typer.Option("1,2", help="Numbers of workers; with commas"),
    engine: str = typer.Option("ray", help="ray, on this machine, or local"),
    shard_chars: int = typer.Option(50_000, help="Characters of a shard"),
    pipeline: str = typer.Option(
        "", help="A pipeline; a new one with the bundled biLM if left out"
    ),
    machines: int = typer.Option(100, help="Of the arithmetic"),
    per_machine: int = typer.Option(16, help="Workers of each, with a core each"),
    json: Path = typer.Option(None, help="JSON file to write"),
) -> None:
    """Measure tokens per second by workers, and compute what a large job takes."""
    settings = EmbedSettings(pipeline=pipeline, shard_chars=shard_chars)
    rows = [measure(text, settings, engine, int(n)) for n in workers.split(",")]
    first = rows[0]["tokens_per_second"] / rows[0]["workers"]
    for row in rows:
        row["efficiency"] = row["tokens_per_second"] / row["workers"] / first
    result: dict[str, Any] = {"engine": engine, "rows": rows}
    result["text_bytes"], result["reading"] = measure_reading(text)
    result["job"] = compute(result, machines, per_machine)
    show(result)
    if json is not None:
        write_json(json, result)


def measure(text: str, settings: EmbedSettings, engine: str, n_workers: int) -> dict[str, Any]:
    """RETURNS (dict[str, Any]): of a job: its rate from the first shard on, when all workers have
    loaded their pipeline, to the last; its counts and sizes."""
    folder = Path(tempfile.mkdtemp())
    stamps: list[float] = []
    tokens: list[int] = []
    peaks: list[int] = []
    try:
        for progress in embed_files(text, folder / "out", settings, make(engine, n_workers)):
            stamps.append(time.perf_counter())
            tokens.append(progress.n_tokens)
            peaks.append(read_peak_memory())
        manifest = read_manifest(folder / "out")
    finally:
        shutil.rmtree(folder)
    # The first shards come while others are still loading.
    warm = min(2 * n_workers, len(stamps) - 2)
    return {
        "workers": n_workers,
        "tokens_per_second": (tokens[-1] - tokens[warm]) / (stamps[-1] - stamps[warm]),
        "seconds_to_first_shard": stamps[1] - stamps[0],
        # Of this process, which computes with `--engine local --workers 1`.
        "peaks": [peaks[len(peaks) // 2], peaks[-1]],
        "n_tokens": manifest["n_tokens"],
        "n_sentences": manifest["n_rows"],
        "n_bytes": sum(shard["size"] for shard in manifest["shards"]),
    }


def make(engine: str, n_workers: int) -> Engine:
    """RETURNS (Engine): the engine; one local worker is a separate process, too."""
    if engine == "ray":
        return partial(run_ray, n_workers=n_workers)
    return partial(run_local, n_processes=n_workers)


def measure_reading(text: str) -> tuple[int, float]:
    """RETURNS (tuple[int, float]): bytes of the text, and how many of them a second the caller
    reads and cuts into tasks."""
    files = find_inputs(text, Path("nowhere"))
    started = time.perf_counter()
    n_bytes = 0
    for task in plan_tasks(files, EmbedSettings()):
        n_bytes += sum(len(record.text.encode()) for record in task.records)
    return n_bytes, n_bytes / (time.perf_counter() - started)


def compute(result: dict[str, Any], machines: int, per_machine: int) -> dict[str, Any]:
    """RETURNS (dict[str, Any]): hours and bytes of a billion sentences like those of the text, by
    the rate of a worker in the largest run; and how long the caller reads meanwhile."""
    row = result["rows"][-1]
    rate = row["tokens_per_second"] / row["workers"]
    n_tokens = _BILLION * row["n_tokens"] / row["n_sentences"]
    n_bytes = n_tokens * result["text_bytes"] / row["n_tokens"]
    return {
        "machines": machines,
        "workers": machines * per_machine,
        "n_tokens": n_tokens,
        "hours": n_tokens / (rate * machines * per_machine) / 3600,
        "output_terabytes": _BILLION * row["n_bytes"] / row["n_sentences"] / 1e12,
        "reading_hours": n_bytes / result["reading"] / 3600,
        "most_workers": result["reading"] / (rate * n_bytes / n_tokens),
    }


def show(result: dict[str, Any]) -> None:
    """Print the tables."""
    header = (
        "workers",
        "tokens/s",
        "of one worker's, each",
        "first shard",
        "MB",
        "sentences",
        "caller's peak at half, end",
    )
    rows = [
        (
            row["workers"],
            f"{row['tokens_per_second']:,.0f}",
            f"{row['efficiency']:.0%}",
            f"{row['seconds_to_first_shard']:.1f} s",
            f"{row['n_bytes'] / 1e6:.1f}",
            f"{row['n_sentences']:,}",
            ", ".join(f"{peak / 2**20:,.0f} MiB" for peak in row["peaks"]),
        )
        for row in result["rows"]
    ]
    print(table(rows, header=header, divider=True))
    job = result["job"]
    facts = [
        ("reading by the caller", f"{result['reading'] / 1e6:,.0f} MB/s"),
        ("workers", f"{job['workers']:,} on {job['machines']:,} machines"),
        ("tokens of a billion sentences", f"{job['n_tokens'] / 1e9:,.1f} billion"),
        ("hours", f"{job['hours']:,.2f}"),
        ("of these the caller reads", f"{job['reading_hours']:,.2f}"),
        ("workers that one caller can feed", f"{job['most_workers']:,.0f}"),
        ("output", f"{job['output_terabytes']:,.2f} TB"),
    ]
    print(table(facts, header=("a billion sentences", ""), divider=True))


if __name__ == "__main__":
    typer.run(main)
