"""`python -m spacy elmo pretrain`: raw text -> a biLM."""

import math
import signal
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict

import typer

from ..errors import Warnings
from .common import (
    INTERRUPTED,
    MOST_THREADS,
    QUIET,
    Console,
    exit_on_error,
    read_pretraining_config,
    set_log_level,
)
from .run_lines import RunLines

if TYPE_CHECKING:
    from ..pretraining.log import Report


def pretrain(
    ctx: typer.Context,
    config: Path = typer.Argument(..., help="Config, see `init-config --pretraining`"),
    output: Path = typer.Argument(..., help="Folder for checkpoints and models", file_okay=False),
    resume: bool = typer.Option(False, "--resume", help="Resume the run in OUTPUT"),
    max_minutes: float = typer.Option(
        0.0, min=0.0, help="End with a checkpoint after so many minutes; 0: never"
    ),
    device: str = typer.Option("cpu", help="cpu or cuda"),
    threads: int = typer.Option(
        0, min=0, max=MOST_THREADS, help="Threads of each process; 0: torch's choice"
    ),
    quiet: bool = QUIET,
) -> None:
    """Train a biLM on raw text. Stops cleanly on SIGTERM, Ctrl-C and --max-minutes.

    Settings can be overridden: --training.learn_rate 0.001. For several processes start
    it with `torchrun --nproc-per-node N -m spacy elmo pretrain ...`.
    """
    import torch

    from ..pretraining.log import RunLog
    from ..pretraining.run import pretrain as run
    from ..utils import keep_memory

    def report(news: "Report", total_steps: int) -> None:
        lines(news, total_steps)
        log(news, total_steps)

    log = RunLog(output)
    is_quiet = quiet or not log.is_first
    set_log_level(is_quiet)
    keep_memory()
    if threads:
        torch.set_num_threads(threads)
    with exit_on_error(is_quiet) as console, closing(RunLines(console)) as lines:
        settings = read_pretraining_config(config, ctx.args)
        with _Stopper(max_minutes, console) as stopper:
            progress = run(
                settings,
                output,
                resume=resume,
                device=device,
                on_report=report,
                should_stop=stopper,
            )
        is_stopped = stopper.is_over and progress.step < log.total_steps
        rest = f" of {log.total_steps}, stopped: continue with `--resume`" if is_stopped else ""
        console.finish(output / "model-last", summary=f"Step {progress.step}{rest}")
    if stopper.signal == signal.SIGINT:
        raise typer.Exit(INTERRUPTED)


class _Stopper:
    """Whether training should stop, asked after every step: after a signal, or when the time is
    up. A signal before the first step ends the command at once: there is nothing to save.
    Signals are heard while its context is open.

    max_minutes (float): from now; 0 for no end.
    console (Console): of the command.
    """

    def __init__(self, max_minutes: float, console: Console) -> None:
        if math.isnan(max_minutes):
            raise typer.BadParameter("--max-minutes: expected a number")
        self.ends = time.monotonic() + 60 * max_minutes if max_minutes else float("inf")
        self.console = console
        self.signal = 0
        self.has_trained = False
        self.handlers: Dict[int, Any] = {}

    def __enter__(self) -> "_Stopper":
        for number in (signal.SIGTERM, signal.SIGINT):
            self.handlers[number] = signal.signal(number, self._listen)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        is_early = bool(self.signal) and not self.has_trained and error is not None
        if is_early:
            self.console.fail(Warnings.WL010)
        for number, handler in self.handlers.items():
            # Python does not know a handler of another language's.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if is_early and not isinstance(error, SystemExit):
            # The signal ended code that then failed while it cleaned up: torch's stack of modes
            # is left short if an exception comes between its taking off and putting back.
            raise SystemExit(128 + self.signal) from error

    def _listen(self, number: int, frame: Any) -> None:
        # Nothing is printed here: a stream that is being written to cannot be written to.
        self.signal = number
        if not self.has_trained:
            raise SystemExit(128 + number)

    def __call__(self) -> bool:
        self.has_trained = True
        return self.is_over

    @property
    def is_over(self) -> bool:
        return bool(self.signal) or time.monotonic() >= self.ends
