"""Where a run is, and what it reports."""

import math
import time
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Optional

from ..language_model.perplexity import Perplexity

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
