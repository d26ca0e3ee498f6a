"""The progress of runs: a bar for each, or lines where there is no terminal."""

import sys
from typing import Any, Dict, Optional, Set

from tqdm import tqdm

from ..experiments.progress import Progress


class RunBars:
    """Show runs.

    n_runs (int): how many there will be.
    max_steps (int): updates of each, at most.
    """

    def __init__(self, n_runs: int, max_steps: int) -> None:
        self.max_steps = max_steps
        self.is_terminal = sys.stderr.isatty()
        self._all = tqdm(total=n_runs, unit="run", disable=not self.is_terminal)
        self._bars: Dict[str, Any] = {}
        self._started: Set[str] = set()

    def report(self, progress: Progress) -> None:
        """progress (Progress): of a run."""
        if self.is_terminal:
            self._draw(progress)
        elif progress.is_new:
            score = format_score(progress.score)
            self.write(f"{progress.run}: update {progress.step:,} of {self.max_steps:,}, {score}")
        elif progress.run not in self._started:
            self.write(f"{progress.run}: started")
        self._started.add(progress.run)

    def _draw(self, progress: Progress) -> None:
        if progress.run not in self._bars:
            settings = {"total": self.max_steps, "unit": "update", "leave": False}
            self._bars[progress.run] = tqdm(desc=progress.run, **settings)
        bar = self._bars[progress.run]
        bar.set_postfix_str(format_score(progress.score), refresh=False)
        bar.n = progress.step
        bar.refresh()

    def end(self, run: str, text: str) -> None:
        """run (str): which has ended. text (str): what there is to say of it."""
        if run in self._bars:
            self._bars.pop(run).close()
        self.write(f"{run}: {text}")
        self._all.update()

    def write(self, text: str) -> None:
        """text (str): a line, above the bars."""
        tqdm.write(text)
        sys.stdout.flush()

    def close(self) -> None:
        """Leave the terminal as it was."""
        for bar in (*self._bars.values(), self._all):
            bar.close()


def format_score(score: Optional[float]) -> str:
    """score (Optional[float]): from 0 to 1. RETURNS (str): For people."""
    return "dev not yet measured" if score is None else f"dev {score:.2%}"
