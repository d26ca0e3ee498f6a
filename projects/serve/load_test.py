"""Load on the loopback address: batches against one request at a time, and memory over many."""

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import httpx
import numpy as np
import typer
from make_pipeline import make_pipeline
from prometheus_client.parser import text_string_to_metric_families

_MIB = 2**20
# A metric of Linux alone.
_RESIDENT = "process_resident_memory_bytes"
_HERE = Path(__file__).parent
_BAD_BODIES = [b"", b'{"texts": ["a', b'{"texts": "a"}', b'{"texts": ["\xff"]}', b'{"texts": []}']
# Share of bad requests while memory is measured: one in this number.
_BAD_SHARE = 50


class Run(NamedTuple):
    """seconds (float): of all requests. latencies (list[float]): of each, in seconds.
    refused (int): bad requests that got a reason."""

    seconds: float
    latencies: list[float]
    refused: int


def main(
    pipeline: str = typer.Option("", help="Saved pipeline; none: one with the bundled biLM"),
    requests: int = typer.Option(2_000, min=10, help="Of each side, each turn"),
    turns: int = typer.Option(3, min=1),
    clients: int = typer.Option(32, min=1, help="That ask at once"),
    memory_requests: int = typer.Option(100_000, min=0, help="To measure memory with; 0: none"),
    most_growth: float = typer.Option(16.0, help="MiB that are still called flat"),
) -> None:
    """Print two tables and a verdict; the exit code is 1 if memory grew."""
    with TemporaryDirectory() as folder:
        path = pipeline or str(Path(folder) / "pipeline")
        if not pipeline:
            make_pipeline(Path(path))
        compare(path, requests, turns, clients)
        problems = []
        if memory_requests:
            problems = measure_memory(path, memory_requests, clients, most_growth)
            measure_words(path, max(memory_requests // 10, 10), clients)
    print("\nGrew: " + "; ".join(problems) if problems else "\nNothing grew, nothing failed.")
    raise typer.Exit(bool(problems))


def compare(pipeline: str, requests: int, turns: int, clients: int) -> None:
    """Both sides in turn, in one run."""
    sides = {"one by one": ("--batch-texts", "1"), "micro-batches": ()}
    runs: dict[tuple[str, int], list[Run]] = {}
    with start(pipeline, *sides["one by one"]) as one, start(pipeline) as batched:
        for turn in range(turns):
            for n in dict.fromkeys((1, clients)):
                for side, url in zip(sides, (one, batched)):
                    n_requests = requests if n > 1 else max(requests // 10, 10)
                    # The same for both sides, and new to each of them.
                    first = 2 * turn + (n > 1)
                    run = asyncio.run(send_all(url, n_requests, n, first=first))
                    runs.setdefault((side, n), []).append(run)
        per_pass = [read_texts_per_pass(url) for url in (one, batched)]
    print_row("server", "clients", "requests/s", "p50, ms", "p99, ms")
    print_row(*["---"] * 5)
    for (side, n), done in runs.items():
        rate = np.median([len(run.latencies) / run.seconds for run in done])
        p50, p99 = np.percentile([s for run in done for s in run.latencies], [50, 99]) * 1000
        print_row(side, n, f"{rate:.0f}", f"{p50:.1f}", f"{p99:.1f}")
    print("\nTexts of a pass, mean: " + ", ".join(f"{n:.1f}" for n in per_pass) + "\n")


def measure_memory(pipeline: str, requests: int, clients: int, most_growth: float) -> list[str]:
    """RETURNS (list[str]): what grew or failed."""
    rows = []
    n_refused = 0
    with start(pipeline) as url:
        if _RESIDENT not in read_samples(url):
            print("This system does not count the memory of a process: it is left out.")
            return []
        print_row("requests", "resident, MiB", "threads", "open files", "strings", "requests/s")
        print_row(*["---"] * 6)
        for part in range(10):
            run = asyncio.run(send_all(url, requests // 10, clients, bad=True, first=part))
            n_refused += run.refused
            state = read_state(url)
            rows.append(state)
            rate = requests // 10 / run.seconds
            n = (part + 1) * (requests // 10)
            print_row(f"{n:,}", f"{state[0]:.0f}", *map(int, state[1:]), f"{rate:.0f}")
    print(f"\nBad requests that got their reason: all of {n_refused:,}.")
    problems = []
    # The first parts fill the cache of words, and the allocator finds its size.
    growth = max(row[0] for row in rows[-2:]) - max(row[0] for row in rows[2:4])
    if growth > most_growth:
        problems.append(f"memory by {growth:.0f} MiB after the first four tenths")
    for i, what in ((1, "threads"), (2, "open files"), (3, "strings")):
        if rows[-1][i] > rows[3][i]:
            problems.append(f"{what} from {rows[3][i]:.0f} to {rows[-1][i]:.0f}")
    return problems


def measure_words(pipeline: str, requests: int, clients: int) -> None:
    """Print what a vocab collects that is never given back."""
    with start(pipeline, "--no-zones") as url:
        if _RESIDENT not in read_samples(url):
            return
        before = read_state(url)
        asyncio.run(send_all(url, requests, clients))
        after = read_state(url)
    print(
        f"\nWithout memory zones, {requests:,} requests: {after[3] - before[3]:,.0f} strings more, "
        f"{after[0] - before[0]:.0f} MiB more."
    )


@contextmanager
def start(pipeline: str, *arguments: str) -> Iterator[str]:
    """A server in a separate process, on a free port of the loopback address."""
    command = [sys.executable, "-m", "elmo_service", pipeline, "--port", "0", *arguments]
    command += ["--log-level", "error"]
    process = subprocess.Popen(command, cwd=_HERE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("Serving on "):
            raise SystemExit("The server did not start.")
        yield line.removeprefix("Serving on ").strip()
    finally:
        process.terminate()
        process.communicate()
    if process.returncode:
        raise SystemExit(f"The server ended with {process.returncode}.")


async def send_all(
    url: str, requests: int, clients: int, *, bad: bool = False, first: int = 0
) -> Run:
    """Send requests, each client one after the other, on a connection that stays open.

    first (int): other texts for each number.
    RAISES (httpx.HTTPStatusError): if one fails that should not.
    """
    numbers = iter(range(requests))
    latencies: list[float] = []
    n_refused = 0

    async def ask() -> None:
        nonlocal n_refused
        # One for all would take three times as long for its list of connections.
        async with httpx.AsyncClient(base_url=url, timeout=60, verify=False) as client:
            for i in numbers:
                if bad and i % _BAD_SHARE == 0:
                    await send_bad(client, i)
                    n_refused += 1
                    continue
                body = make_body(random.Random(f"{first} {i}"), f"{first}x{i}")
                started = time.perf_counter()
                (await client.post("/vectors", json=body)).raise_for_status()
                latencies.append(time.perf_counter() - started)

    started = time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(clients)))
    return Run(time.perf_counter() - started, latencies, n_refused)


async def send_bad(client: httpx.AsyncClient, i: int) -> None:
    """RAISES (RuntimeError): if it is not refused with a reason."""
    content = _BAD_BODIES[i // _BAD_SHARE % len(_BAD_BODIES)]
    headers = {"content-type": "application/json"}
    response = await client.post("/vectors", content=content, headers=headers)
    if not 400 <= response.status_code < 500 or not response.json()["error"]["reason"]:
        raise RuntimeError(f"A bad request got {response.status_code}")


def make_body(rng: random.Random, name: str) -> dict[str, Any]:
    """RETURNS (dict): a short text of Zipfian words, the last of them new."""
    ranks = (int(5_000 ** rng.random()) for _ in range(rng.randint(4, 18)))
    text = " ".join([*(f"w{rank}" for rank in ranks), f"new{name}"])
    return {"texts": [text], "pooling": "mean", "encoding": "base64"}


def read_samples(url: str) -> dict[str, float]:
    """RETURNS (dict[str, float]): the server's metrics without labels."""
    families = text_string_to_metric_families(httpx.get(f"{url}/metrics").text)
    samples = chain.from_iterable(family.samples for family in families)
    return {sample.name: sample.value for sample in samples if not sample.labels}


def read_state(url: str) -> tuple[float, float, float, float]:
    """RETURNS (tuple): MiB in memory, threads, open files, strings of the vocab."""
    samples = read_samples(url)
    return (
        samples[_RESIDENT] / _MIB,
        samples["elmo_threads"],
        samples["process_open_fds"],
        samples["elmo_vocab_strings"],
    )


def read_texts_per_pass(url: str) -> float:
    """RETURNS (float): the mean since the server began."""
    samples = read_samples(url)
    return samples["elmo_batch_texts_sum"] / samples["elmo_batch_texts_count"]


def print_row(*cells: Any) -> None:
    """Print a line of a table in Markdown."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    typer.run(main)
