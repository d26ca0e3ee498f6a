"""Progress, reports, log and curves of a run."""

import json
import math
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional

import srsly

from ..drawing import Figure, has_matplotlib, require_matplotlib, save_figure
from ..language_model.evaluation import Perplexity

# The language model among the losses: no teacher's name is empty.
_MODEL = ""


@dataclass
class Progress:
    """Where a run is, in JSON's types.

    position (Dict[str, Any]): of the stream.
    step (int): steps done.
    n_tokens (int): predictions of one direction that were trained on.
    n_bad_steps (int): steps without a finite gradient, since the last good one.
    best (Optional[float]): best held-out perplexity, mean of both directions.
    best_step (int): when that was.
    scaler (Dict[str, Any]): state of the scale of float16 gradients.
    held_out (str): digest of the held-out sequences; "" in checkpoints that do not say it.
    """

    position: Dict[str, Any]
    step: int = 0
    n_tokens: int = 0
    n_bad_steps: int = 0
    best: Optional[float] = None
    best_step: int = 0
    scaler: Dict[str, Any] = field(default_factory=dict)
    held_out: str = ""

    def compare_with(self, held_out: str) -> bool:
        """held_out (str): digest of what is measured on from now on, "" for nothing: then all
        stays as it was. RETURNS (bool): whether it was something else before: then the best so
        far, which cannot be compared, is forgotten."""
        if not held_out:
            return False
        is_other = self.held_out not in ("", held_out) and self.best is not None
        if is_other:
            self.best, self.best_step = None, self.step
        self.held_out = held_out
        return is_other

    def update_best(self, perplexity: float) -> bool:
        """perplexity (float): of the held-out text, now. RETURNS (bool): whether it is the
        best so far."""
        if not math.isfinite(perplexity) or (self.best is not None and perplexity >= self.best):
            return False
        self.best, self.best_step = perplexity, self.step
        return True

    def is_out_of_patience(self, patience: int) -> bool:
        """patience (int): steps to wait for a better perplexity; 0 for ever. RETURNS (bool):
        whether they are over."""
        return 0 < patience <= self.step - self.best_step


@dataclass
class Report:
    """What happened since the last report.

    step (int): steps done.
    n_tokens (int): predictions of one direction, since the start of the run.
    learn_rate (float): of the last step.
    loss (float): mean training loss, nats for each prediction.
    gradient_norm (float): of the last step, before clipping.
    tokens_per_second (float): of all processes.
    teachers (Dict[str, float]): mean loss of each, for each prediction.
    dev (Optional[Perplexity]): of the held-out text, if it was measured.
    is_best (bool): whether that was the best so far.
    """

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
    """Sums since the last report.

    teachers (Iterable[str]): their names, in the order of their losses.
    """

    def __init__(self, teachers: Iterable[str]) -> None:
        self.names = [_MODEL, *teachers]
        self.restart()

    def restart(self) -> None:
        """Begin the next report."""
        self.started = time.monotonic()
        self.losses = dict.fromkeys(self.names, 0.0)
        self.n_targets = 0

    def add(self, losses: List[float], n_targets: int) -> None:
        """losses (List[float]): of a step, over all processes: the language model's, then
        each teacher's. n_targets (int): its predictions of one direction."""
        for name, loss in zip(self.losses, losses):
            self.losses[name] += loss
        self.n_targets += n_targets

    def make_report(self, progress: Progress, rate: float, norm: float) -> Report:
        """progress (Progress): after the last step. rate, norm (float): its learning rate and
        gradient norm. RETURNS (Report): without an evaluation."""
        seconds = max(1e-9, time.monotonic() - self.started)
        means = {name: loss / (2 * self.n_targets) for name, loss in self.losses.items()}
        return Report(
            step=progress.step,
            n_tokens=progress.n_tokens,
            learn_rate=rate,
            loss=means.pop(_MODEL),
            gradient_norm=norm,
            tokens_per_second=self.n_targets / seconds,
            teachers=means,
        )


def plot_curves(lines: List[Dict[str, Any]], path: Path) -> None:
    """Draw the curves of a pretraining run: training loss, exact held-out perplexity,
    learning rate.

    lines (List[Dict[str, Any]]): lines of its log.jsonl.
    path (Path): file to write; its ending chooses the format.
    RAISES (ValueError): EL038 without matplotlib.
    """
    require_matplotlib()
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
