"""`RunLog`: what is written of a run: log.jsonl and a picture of its curves."""

import json
import math
import os
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

import srsly

from ..drawing import has_matplotlib
from .curves import plot_curves
from .run_progress import Report

LOG_FILE = "log.jsonl"
CURVES_FILE = "curves.png"
# What every line has, and those with a held-out perplexity.
_NUMBERS = ("step", "n_tokens", "learn_rate")
_DEV_KEYS = ("dev_forward", "dev_backward", "dev_perplexity")


class RunLog:
    """Write down each report. Only the first process does.

    output (Path): the run's folder.
    """

    def __init__(self, output: Path) -> None:
        self.output = output
        self.is_first = int(os.environ.get("RANK", 0)) == 0
        self.total_steps = 0

    def __call__(self, report: Report, total_steps: int) -> None:
        """report (Report): what happened. total_steps (int): length of the run."""
        if not self.is_first:
            return
        self.total_steps = total_steps
        _append(self.output / LOG_FILE, srsly.json_dumps(make_line(report, total_steps)))
        if report.dev is not None and has_matplotlib():
            plot_curves(read_log(self.output), self.output / CURVES_FILE)


def make_line(report: Report, total_steps: int) -> Dict[str, Any]:
    """report (Report): what happened. total_steps (int): length of the run.
    RETURNS (Dict[str, Any]): a line of log.jsonl."""
    line: Dict[str, Any] = {
        "step": report.step,
        "total_steps": total_steps,
        "n_tokens": report.n_tokens,
        "learn_rate": report.learn_rate,
        "train_loss": report.loss,
        "gradient_norm": report.gradient_norm,
        "tokens_per_second": report.tokens_per_second,
        "time": time.time(),
    }
    line.update({f"loss_{name}": loss for name, loss in report.teachers.items()})
    if report.dev is not None:
        line.update(zip(_DEV_KEYS, report.dev.perplexities))
    # JSON knows no infinity.
    return {key: value if math.isfinite(value) else None for key, value in line.items()}


def read_log(output: Path) -> List[Dict[str, Any]]:
    """output (Path): a run's folder. RETURNS (List[Dict[str, Any]]): The lines of its
    log. Steps that were done once more after a crash count once, the last time; a line that
    a crash tore, or that is damaged, is left out."""
    lines: List[Dict[str, Any]] = []
    # In bytes: a damaged one may be no character.
    for part in (output / LOG_FILE).read_bytes().split(b"\n"):
        line = _parse(part)
        if line is None:
            continue
        while lines and lines[-1]["step"] >= line["step"]:
            lines.pop()
        lines.append(line)
    return lines


def _parse(part: bytes) -> Optional[Dict[str, Any]]:
    try:
        line = json.loads(part)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict) or not all(_is_number(line.get(key)) for key in _NUMBERS):
        return None
    n_dev = sum(key in line for key in _DEV_KEYS)
    return line if n_dev in (0, len(_DEV_KEYS)) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _append(path: Path, line: str) -> None:
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            is_torn = file.read(1) != b"\n"  # the last one, by a crash
            line = "\n" * is_torn + line
        file.write(f"{line}\n".encode())
