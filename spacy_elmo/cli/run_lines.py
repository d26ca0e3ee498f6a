"""The progress of pretraining: a line for each report, and a bar below on a terminal."""

from typing import TYPE_CHECKING, Any

from ..utils import count_things
from .common import Console

if TYPE_CHECKING:
    from ..pretraining.log import Report

_HEADER = "    step    done    tokens  train loss   grad     rate   tok/s      left"
# Lines from header to header.
_N_LINES = 40


class RunLines:
    """Show a run.

    console (Console): of the command.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._n_lines = 0
        self._bar: Any = None

    def __call__(self, report: "Report", total_steps: int) -> None:
        """report (Report): what happened. total_steps (int): length of the run."""
        if self._bar is None:
            start = {"total": total_steps, "initial": report.step}
            self._bar = self.console.track(**start, unit="steps")
        self._bar.update(report.step - self._bar.n)
        self._bar.set_postfix_str(f"{report.tokens_per_second:.0f} tokens/s", refresh=False)
        if self._n_lines % _N_LINES == 0:
            self.console.tell(_HEADER)
        self._n_lines += 1
        self.console.tell(_format(report, total_steps))
        if report.dev is not None:
            sums = report.dev
            forward, backward, mean = sums.perplexities
            self.console.inform(
                f"Exact held-out perplexity {mean:.2f} (forward {forward:.2f}, backward "
                f"{backward:.2f}; {count_things(sums.n_sequences, 'sequence')}, "
                f"{count_things(sums.n_targets, 'prediction')})"
                + (", the best so far" if report.is_best else "")
            )

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._bar is not None:
            self._bar.close()


def _format(report: "Report", total_steps: int) -> str:
    done = report.step / total_steps
    each = report.n_tokens / report.step
    left = (total_steps - report.step) * each / report.tokens_per_second
    return (
        f"{report.step:8d} {done:7.1%} {report.n_tokens / 1e6:8.2f}M {report.loss:11.4f} "
        f"{report.gradient_norm:6.2f} {report.learn_rate:8.5f} {report.tokens_per_second:7.0f} "
        f"{int(left // 3600):3d}h {int(left % 3600 // 60):02d}m"
    )
