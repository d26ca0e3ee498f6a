"""Progress, reports, log and curves of a run."""

import json
import math
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional

import srsly

from ..drawing import Figure, has_matplotlib, save_figure
from ..language_model.evaluation import Perplexity

LOG_FILE = "log.jsonl"
CURVES_FILE = "curves.png"
_DEV_KEYS = ("dev_forward", "dev_backward", "dev_perplexity")


@dataclass
class Progress:
    """Where a run is, in JSON types: position of the stream, steps, predictions of one direction,
    steps in a row without a finite gradient, best held-out perplexity and its step, scale of
    float16 gradients, digest of the held-out sequences."""

    position: Dict[str, Any]
    step: int = 0
    n_tokens: int = 0
    n_bad_steps: int = 0
    best: Optional[float] = None
    best_step: int = 0
    scaler: Dict[str, Any] = field(default_factory=dict)
    held_out: str = ""

    def update_best(self, perplexity: float) -> bool:
        """Take over a held-out perplexity, if it is the best so far."""
        if not math.isfinite(perplexity) or (self.best is not None and perplexity >= self.best):
            return False
        self.best, self.best_step = perplexity, self.step
        return True

    def is_out_of_patience(self, patience: int) -> bool:
        """Whether the best perplexity is `patience` steps old; 0 for never."""
        return 0 < patience <= self.step - self.best_step


@dataclass
class Report:
    """Means since the last report, of all processes. Losses are in nats for each prediction; the
    rate and the norm of the gradient before clipping are those of the last step; `dev` is that of
    the held-out text, if it was measured."""

    step: int
    n_tokens: int
    learn_rate: float
    loss: float
    gradient_norm: float
    tokens_per_second: float
    teachers: Dict[str, float] = field(default_factory=dict)
    dev: Optional[Perplexity] = None
    is_best: bool = False


class ReportWindow:
    """Sums since the last report, with the teachers in the order of their losses."""

    def __init__(self, teachers: Iterable[str]) -> None:
        self.teachers = list(teachers)
        self.restart()

    def restart(self) -> None:
        self.started = time.monotonic()
        self.losses = [0.0] * (1 + len(self.teachers))
        self.n_targets = 0

    def add(self, losses: List[float], n_targets: int) -> None:
        """Add the losses of a step over all processes: of the language model, then of teachers."""
        self.losses = [total + loss for total, loss in zip(self.losses, losses)]
        self.n_targets += n_targets

    def make_report(self, progress: Progress, rate: float, norm: float) -> Report:
        """Make a report, without an evaluation, after a step with this learning rate and norm."""
        seconds = max(1e-9, time.monotonic() - self.started)
        loss, *of_teachers = (total / (2 * self.n_targets) for total in self.losses)
        return Report(
            step=progress.step,
            n_tokens=progress.n_tokens,
            learn_rate=rate,
            loss=loss,
            gradient_norm=norm,
            tokens_per_second=self.n_targets / seconds,
            teachers=dict(zip(self.teachers, of_teachers)),
        )


class RunLog:
    """Write log.jsonl and a picture of the curves to a run's folder, in the first process."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.is_first = int(os.environ.get("RANK", 0)) == 0
        self.total_steps = 0

    def __call__(self, report: Report, total_steps: int) -> None:
        if not self.is_first:
            return
        self.total_steps = total_steps
        line = srsly.json_dumps(_make_line(report, total_steps))
        with (self.output / LOG_FILE).open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                # A process that was killed may have left half a line.
                if file.read(1) != b"\n":
                    line = "\n" + line
            file.write(f"{line}\n".encode())
        if report.dev is not None and has_matplotlib():
            plot_curves(read_log(self.output), self.output / CURVES_FILE)


def _make_line(report: Report, total_steps: int) -> Dict[str, Any]:
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
    # JSON has no infinity.
    return {key: value if math.isfinite(value) else None for key, value in line.items()}


def read_log(output: Path) -> List[Dict[str, Any]]:
    """Read log.jsonl of a run's folder. Of steps that were repeated after a crash the last line
    counts; half lines are left out."""
    lines: List[Dict[str, Any]] = []
    for part in (output / LOG_FILE).read_text("utf-8", "replace").split("\n"):
        try:
            line = json.loads(part)
        except ValueError:
            continue
        while lines and lines[-1]["step"] >= line["step"]:
            lines.pop()
        lines.append(line)
    return lines


def plot_curves(lines: List[Dict[str, Any]], path: Path) -> None:
    """Draw training loss, exact held-out perplexity and learning rate."""
    figure = Figure(figsize=(8, 9), layout="constrained")
    loss, dev, rate = figure.subplots(3, 1, sharex=True)
    millions = [line["n_tokens"] / 1e6 for line in lines]
    loss.plot(millions, [line.get("train_loss") for line in lines], color="C0", linewidth=0.8)
    loss.set_ylabel("training loss (nats)")
    measured = [line for line in lines if "dev_perplexity" in line]
    for key, label in (("dev_forward", "forward"), ("dev_backward", "backward")):
        points = [line["n_tokens"] / 1e6 for line in measured]
        dev.plot(points, [line[key] for line in measured], marker="o", label=label)
    dev.set_ylabel("held-out perplexity (exact)")
    if measured:
        dev.set_yscale("log")
        dev.legend()
    rate.plot(millions, [line["learn_rate"] for line in lines], color="C2")
    rate.set_ylabel("learning rate")
    rate.set_xlabel("million tokens")
    for axes in (loss, dev, rate):
        axes.grid(alpha=0.3)
    save_figure(figure, path)
