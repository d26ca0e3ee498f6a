"""`python -m spacy elmo pretrain`: raw text -> a biLM."""

import ctypes
import math
import signal
import sys
import time
from pathlib import Path
from typing import Any, Callable

import typer
from wasabi import msg

from ..errors import Warnings
from .common import MOST_THREADS, exit_on_error, read_pretraining_config


def pretrain(
    ctx: typer.Context,
    config: Path = typer.Argument(..., help="Config, see `init-config --pretraining`"),
    output: Path = typer.Argument(..., help="Folder for checkpoints and models", file_okay=False),
    resume: bool = typer.Option(False, "--resume", help="Resume the run in OUTPUT"),
    max_minutes: float = typer.Option(
        0.0, min=0.0, help="End with a checkpoint after so long; 0: never"
    ),
    device: str = typer.Option("cpu", help="cpu or cuda"),
    threads: int = typer.Option(
        0, min=0, max=MOST_THREADS, help="Threads of each process; 0: torch's choice"
    ),
) -> None:
    """Train a biLM on raw text. Stops cleanly on SIGTERM, Ctrl-C and --max-minutes.

    Settings can be overridden: --training.learn_rate 0.001. For several processes start
    it with `torchrun --nproc-per-node N -m spacy elmo pretrain ...`.
    """
    import logging

    import torch

    from ..pretraining.run import pretrain as run
    from ..pretraining.run_log import RunLog

    logging.basicConfig(format="%(message)s")
    log = RunLog(output)
    logging.getLogger("spacy_elmo").setLevel(logging.INFO if log.is_first else logging.ERROR)
    _keep_memory()
    if threads:
        torch.set_num_threads(threads)
    with exit_on_error():
        settings = read_pretraining_config(config, ctx.args)
        stopper = _Stopper(max_minutes)
        progress = run(
            settings,
            output,
            resume=resume,
            device=device,
            on_report=log,
            should_stop=stopper,
        )
    if log.is_first:
        msg.good(f"Step {progress.step}: wrote {output / 'model-last'}")
        if stopper.is_over and progress.step < log.total_steps:
            msg.info(f"Stopped before step {log.total_steps}: continue with `--resume`.")


class _Stopper:
    """Whether training should stop, asked after every step: after a signal, or when the time is
    up. A signal before the first step ends the command at once: there is nothing to save."""

    def __init__(self, max_minutes: float) -> None:
        if math.isnan(max_minutes):
            raise typer.BadParameter("--max-minutes: expected a number")
        self.ends = time.monotonic() + 60 * max_minutes if max_minutes else float("inf")
        self.is_told = False
        self.has_trained = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._tell)

    def _tell(self, number: int, frame: Any) -> None:
        self.is_told = True
        if not self.has_trained:
            msg.warn(Warnings.WL010)
            raise SystemExit(128 + number)

    def __call__(self) -> bool:
        self.has_trained = True
        return self.is_over

    @property
    def is_over(self) -> bool:
        return self.is_told or time.monotonic() >= self.ends


def _keep_memory() -> None:
    """Have the C library keep what it frees: asking the system for the same large blocks
    over and over costs a fifth of the time. glibc only; harmless elsewhere."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        mallopt: Callable[[int, int], int] = getattr(libc, "mallopt", lambda key, value: 0)
        m_trim_threshold, m_mmap_threshold = -1, -3
        mallopt(m_mmap_threshold, 1 << 30)
        mallopt(m_trim_threshold, (1 << 31) - 1)
