"""The progress of runs: a bar for each, or lines where there is no terminal."""

from typing import Any, Dict, Optional, Set

from ..experiments.progress import RunProgress
from .console import Console


class RunBars:
    """Show runs.

    n_runs (int): how many there will be.
    max_steps (int): updates of each, at most.
    console (Console): of the command.
    """

    def __init__(self, n_runs: int, max_steps: int, console: Console) -> None:
        self.max_steps = max_steps
        self.console = console
        self._all = console.track(total=n_runs, unit="runs")
        self._bars: Dict[str, Any] = {}
        self._started: Set[str] = set()

    def report(self, progress: RunProgress) -> None:
        """progress (RunProgress): of a run."""
        if self.console.has_bars:
            self._draw(progress)
        elif progress.is_new:
            score = format_score(progress.score)
            self.console.tell(
                f"{progress.run}: update {progress.step:,} of {self.max_steps:,}, {score}"
            )
        elif progress.run not in self._started:
            self.console.tell(f"{progress.run}: started")
        self._started.add(progress.run)

    def _draw(self, progress: RunProgress) -> None:
        if progress.run not in self._bars:
            settings: Dict[str, Any] = {"total": self.max_steps, "unit": "updates", "leave": False}
            self._bars[progress.run] = self.console.track(desc=progress.run, **settings)
        bar = self._bars[progress.run]
        bar.set_postfix_str(format_score(progress.score), refresh=False)
        bar.n = progress.step
        bar.refresh()

    def end(self, run: str, text: str) -> None:
        """run (str): which has ended. text (str): what there is to say of it."""
        if run in self._bars:
            self._bars.pop(run).close()
        self.console.tell(f"{run}: {text}")
        self._all.update()

    def close(self) -> None:
        """Leave the terminal as it was."""
        for bar in (*self._bars.values(), self._all):
            bar.close()


def format_score(score: Optional[float]) -> str:
    """score (Optional[float]): from 0 to 1. RETURNS (str): For people."""
    return "dev not yet measured" if score is None else f"dev {score:.2%}"
