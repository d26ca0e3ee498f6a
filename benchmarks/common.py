"""What the benchmarks share: the machine's limits, repeats, tables."""

import platform
import time
from collections.abc import Callable
from statistics import median

import torch


def time_median(function: Callable[[], object], n_repeats: int = 5) -> float:
    """RETURNS (float): seconds of a call, the median of several after one that is not
    counted."""
    function()
    seconds = []
    for _ in range(n_repeats):
        started = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - started)
    return median(seconds)


def measure_products(dtype: torch.dtype, n_rows: int, n_in: int, n_out: int) -> float:
    """RETURNS (float): operations per second of matrix products of a shape, multiply and
    add counted as two."""
    a, b = (torch.randn(shape).to(dtype) for shape in ((n_rows, n_in), (n_in, n_out)))
    n_operations = 2 * n_rows * n_in * n_out
    n_calls = max(1, int(1e9 / n_operations))

    def multiply() -> None:
        for _ in range(n_calls):
            torch.mm(a, b)

    return n_calls * n_operations / time_median(multiply)


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
