"""benchmarks/soak.py: it runs, and says what grew."""

import mmap
import re
import sys

import pytest
import typer
from typer.testing import CliRunner

from .support.helpers import DATA, ROOT

sys.path.append(str(ROOT / "benchmarks"))

from process_state import MIB, ProcessState, read_state
from soak import Sample, find_growth, main

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def make_samples(memory=lambda i: 500, threads=lambda i: 5, handles=lambda i: 6, n=20):
    return [
        Sample(i, 1000 * i, 1255, ProcessState(int(memory(i) * MIB), threads(i), handles(i)))
        for i in range(n)
    ]


CASES = {
    "flat": ({}, ""),
    "a warm-up": ({"memory": lambda i: 500 + min(i, 5) * 40}, ""),
    "a little up and down": ({"memory": lambda i: 500 + i % 3 * 10}, ""),
    "a leak": ({"memory": lambda i: 500 + 3 * i}, "memory by 30.0 MiB"),
    "threads": ({"threads": lambda i: 5 + i // 10}, "threads from 5 to 6"),
    "files": ({"handles": lambda i: 6 + i}, "handles from 12 to 25"),
    "too short": ({"n": 2}, "too few to say"),
}


@pytest.mark.parametrize("changes, problem", CASES.values(), ids=CASES)
def test_growth_after_the_warm_up_is_found(changes, problem):
    problems = find_growth(make_samples(**changes), 16 * MIB)

    assert problem in "; ".join(problems) and bool(problems) is bool(problem)


def test_the_state_of_a_process_is_what_it_holds(tmp_path):
    before = read_state()
    # Of the system: the process may hold as much that is free.
    with mmap.mmap(-1, 64 * MIB) as block, (tmp_path / "file").open("w"):
        block[::4096] = b"x" * len(block[::4096])
        after = read_state()

    assert after.memory - before.memory > 50 * MIB and after.handles == before.handles + 1


def test_a_few_seconds_have_a_table_and_a_verdict():
    app = typer.Typer()
    app.command()(main)
    pipeline = str(DATA / "toy_pipeline")
    arguments = ["--pipeline", pipeline, "--minutes", "0.02", "--batch-texts", "4"]

    result = CliRunner().invoke(app, [*arguments, "--most-growth", "1000"])

    assert result.exit_code == 0, result.output
    rows = re.findall(
        r"^\| 0\.0 \| [\d,]+ \| \d+ \| \d+ \| \d+ \| ([\d,]+) \|", result.output, re.M
    )
    # Memory zones give the new words back.
    assert len(rows) > 4 and len(set(rows)) == 1
    assert "Flat: nothing grew." in result.output
    too_little = CliRunner().invoke(app, [*arguments, "--most-growth", "-1000"])
    assert too_little.exit_code == 1 and "Not flat: memory by " in too_little.output
