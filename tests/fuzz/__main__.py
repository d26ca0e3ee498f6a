"""`python -m tests.fuzz TARGET|all --minutes N --corpus FOLDER`: fuzz, and say what came of it.

By atheris where it is installed (extra "fuzz"), else by a loop of our own. Below FOLDER, each
target has inputs to go on from ("corpus"), and those that broke the promise ("findings"), each with
what happened in a .txt beside it. Ends with 1 if there are any.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List

from .guided import import_atheris, read_coverage
from .targets import TARGETS
from .worker import COUNTS, CURRENT, FINDINGS, Finding, keep, say

# A process that an input ended is started again, if so many seconds are left.
_LEAST = 3.0
_MOST_PROCESSES = 50
# Making the seeds, and the end, on a slow machine.
_MARGIN = 300.0


def fuzz_target(name: str, folder: Path, seconds: float, engine: str, seed: int) -> str:
    """Fuzz a target in processes of its own, one after the other.

    RETURNS (str): what libFuzzer said of its coverage.
    """
    coverage, left = "", seconds
    folder.mkdir(parents=True, exist_ok=True)
    totals: List[Dict[str, Any]] = []
    while not totals or (left > _LEAST and len(totals) < _MOST_PROCESSES):
        start = time.monotonic()
        (folder / COUNTS).unlink(missing_ok=True)
        end = _run_worker(name, folder, left, engine, seed + len(totals))
        totals.append(json.loads((folder / COUNTS).read_text()) if _has_counts(folder) else {})
        coverage = read_coverage(end.stderr.splitlines()) or coverage
        left -= time.monotonic() - start
        if end.returncode != 0:
            _keep_end(folder, end)
    _add_up(folder, totals)
    return coverage


def _has_counts(folder: Path) -> bool:
    return (folder / COUNTS).exists()


def _run_worker(
    name: str, folder: Path, seconds: float, engine: str, seed: int
) -> "subprocess.CompletedProcess[str]":
    arguments = [name, str(folder), str(seconds), engine, str(seed)]
    command = [sys.executable, "-X", "faulthandler", "-m", f"{__package__}.worker", *arguments]
    try:
        return subprocess.run(
            command, stderr=subprocess.PIPE, text=True, errors="replace", timeout=seconds + _MARGIN
        )
    except subprocess.TimeoutExpired as err:
        text = err.stderr.decode(errors="replace") if isinstance(err.stderr, bytes) else ""
        return subprocess.CompletedProcess(command, -99, stderr=text)


def _keep_end(folder: Path, end: "subprocess.CompletedProcess[str]") -> None:
    """Keep the input that ended a process: by a crash, a signal, or its time."""
    lines = end.stderr.splitlines()
    frames = [line.strip() for line in lines if line.startswith('  File "')]
    place = "-".join(frames[0].replace('"', " ").split()[1:5:3]) if frames else "nowhere"
    name = f"ended-{end.returncode}-{os.path.basename(place)}"
    data = (folder / CURRENT).read_bytes() if (folder / CURRENT).exists() else b""
    keep(folder, Finding(name, "\n".join(lines[-60:])), data)


def _add_up(folder: Path, totals: List[Dict[str, Any]]) -> None:
    outcomes: Dict[str, int] = {}
    for total in totals:
        for outcome, n in total.get("outcomes", []):
            outcomes[outcome] = outcomes.get(outcome, 0) + n
    content = {"n_runs": sum(total.get("n_runs", 0) for total in totals), "outcomes": outcomes}
    (folder / COUNTS).write_text(json.dumps(content, indent=1))


def _describe(name: str, folder: Path, seconds: float, coverage: str) -> str:
    counts = json.loads((folder / COUNTS).read_text())
    n_runs, n_outcomes = counts["n_runs"], len(counts["outcomes"])
    findings = sorted(path.stem for path in folder.glob(f"{FINDINGS}/*.txt"))
    return (
        f"{name:22} {n_runs:9,} inputs, {n_runs / max(seconds, 1):7.1f}/s, {n_outcomes:4} outcomes"
        f", {coverage or 'coverage not counted'}, {len(findings)} findings"
        + "".join(f"\n  {finding}" for finding in findings)
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=["all", *TARGETS], nargs="+")
    parser.add_argument("--minutes", type=float, default=1.0, help="for all targets together")
    parser.add_argument("--corpus", type=Path, required=True, help="folder, kept between runs")
    parser.add_argument("--engine", choices=["auto", "atheris", "loop"], default="auto")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    given = parser.parse_args()
    engine = given.engine
    if engine == "auto":
        engine = "atheris" if import_atheris() else "loop"
    names = list(TARGETS) if "all" in given.target else given.target
    seconds = 60 * given.minutes / len(names)
    say(f"{engine}, seed {given.seed}, {seconds:.0f} s for each target")
    has_findings = False
    for name in names:
        folder = given.corpus / name
        coverage = fuzz_target(name, folder, seconds, engine, given.seed)
        print(_describe(name, folder, seconds, coverage), flush=True)
        has_findings |= any(folder.glob(f"{FINDINGS}/*"))
    return int(has_findings)


if __name__ == "__main__":
    sys.exit(main())
