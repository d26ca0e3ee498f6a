"""`python -m spacy elmo pretrain` and `debug-corpus`: raw text -> a biLM."""

import io
import logging
import math
import signal
import time
from contextlib import closing, contextmanager, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Dict, Iterator, List

import typer

from ..utils import count_things
from .common import INTERRUPTED, Console, exit_on_error
from .options import CONFIG, MOST_THREADS, QUIET

if TYPE_CHECKING:
    from ..pretraining.log import Report

_HEADER = "    step    done    tokens  train loss   grad     rate   tok/s      left"
# Lines between two headers.
_N_LINES = 40


def pretrain(
    ctx: typer.Context,
    config: Path = CONFIG,
    output: Path = typer.Argument(..., help="Folder for checkpoints and models", file_okay=False),
    resume: bool = typer.Option(False, "--resume", help="Resume the run in OUTPUT"),
    max_minutes: float = typer.Option(
        0.0, min=0.0, help="Write a checkpoint and stop after this time; 0: never"
    ),
    device: str = typer.Option("cpu", help="cpu or cuda"),
    threads: int = typer.Option(
        0, min=0, max=MOST_THREADS, help="Threads of each process; 0: torch chooses"
    ),
    quiet: bool = QUIET,
) -> None:
    """Train a biLM on raw text. SIGTERM, Ctrl-C and --max-minutes stop it with a checkpoint.

    Options override settings of the config: --training.learn_rate 0.001. To use several
    processes, type `torchrun --nproc-per-node N -m spacy elmo pretrain ...`.
    """
    import torch

    from ..pretraining.log import RunLog
    from ..pretraining.run import pretrain as run
    from ..utils import keep_memory

    def report(news: "Report", total_steps: int) -> None:
        lines(news, total_steps)
        log(news, total_steps)

    if math.isnan(max_minutes):
        raise typer.BadParameter("--max-minutes: expected a number, such as 60")
    log = RunLog(output)
    is_quiet = quiet or not log.is_first
    _set_log_level(is_quiet)
    keep_memory()
    if threads:
        torch.set_num_threads(threads)
    with exit_on_error(is_quiet) as console, closing(_Lines(console)) as lines:
        settings = _read_config(config, ctx.args)
        stopper = Stopper(max_minutes)
        with stopper.listening(console):
            progress = run(
                settings,
                output,
                resume=resume,
                device=device,
                on_report=report,
                should_stop=stopper,
            )
        is_stopped = stopper.is_over and progress.step < log.total_steps
        rest = f" of {log.total_steps}; to continue, add `--resume`" if is_stopped else ""
        console.finish(output / "model-last", summary=f"Step {progress.step}{rest}")
    if stopper.signal == signal.SIGINT:
        raise typer.Exit(INTERRUPTED)


def debug_corpus(ctx: typer.Context, config: Path = CONFIG, quiet: bool = QUIET) -> None:
    """Show the text that pretraining would read: tokens, lengths, share of words in the vocabulary;
    and the memory and time that it would need. Options override settings as in `pretrain`."""
    from ..pretraining.config import RunConfig
    from ..pretraining.corpus_report import describe_corpus

    _set_log_level(quiet)
    with exit_on_error(quiet) as console, TemporaryDirectory() as folder:
        settings = RunConfig.check(_read_config(config, ctx.args))
        figures = describe_corpus(settings, Path(folder))
        rows = [(name, _format_figure(value)) for name, value in figures.items()]
        console.show_table(rows, ("what", ""))
        console.finish()


def _format_figure(value: object) -> str:
    from ..pretraining.corpus_report import Share

    if isinstance(value, Share):
        return f"{value:.2%}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _read_config(path: Path, arguments: List[str]) -> Dict[str, Any]:
    """Read a pretraining config with its defaults and the command line's overrides, such as
    ["--training.seed", "1"]."""
    from click import ClickException
    from spacy.cli._util import parse_config_overrides

    from ..pretraining.config import load_config

    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            overrides = parse_config_overrides(arguments)
    except ClickException as err:
        # Typer's copy of click does not handle the errors of spaCy's.
        raise typer.BadParameter(err.format_message()) from err
    except SystemExit as err:
        raise typer.BadParameter(printed.getvalue().strip()) from err
    return load_config(path, overrides)


def _set_log_level(is_quiet: bool) -> None:
    """Print the library's log, or with `is_quiet` only its errors."""
    logging.basicConfig(format="%(message)s")
    logging.getLogger("spacy_elmo").setLevel(logging.ERROR if is_quiet else logging.INFO)


class Stopper:
    """Whether training should stop, asked after every step: after Ctrl-C, SIGTERM, or when the
    time is up (0: never). A second signal, or one before the first step, ends it at once."""

    def __init__(self, max_minutes: float) -> None:
        self.ends = time.monotonic() + 60 * max_minutes if max_minutes else math.inf
        self.signal = 0
        self.has_trained = False

    def __call__(self) -> bool:
        self.has_trained = True
        return self.is_over

    @property
    def is_over(self) -> bool:
        """Whether a signal came or the time is up."""
        return bool(self.signal) or time.monotonic() >= self.ends

    @contextmanager
    def listening(self, console: Console) -> Iterator[None]:
        """Handle signals until the context ends."""
        numbers = (signal.SIGTERM, signal.SIGINT)
        handlers = [signal.signal(number, self._handle) for number in numbers]
        try:
            yield
        except BaseException as err:
            if not self.signal or self.has_trained:
                raise
            console.fail("Stopped before the first step. Repeat the command to start again.")
            # Code that the signal interrupted may have failed while it cleaned up.
            raise SystemExit(128 + self.signal) from err
        finally:
            for number, handler in zip(numbers, handlers):
                signal.signal(number, handler or signal.SIG_DFL)

    def _handle(self, number: int, frame: Any) -> None:
        # Nothing is printed here, since a stream may be in the middle of a write.
        is_second = bool(self.signal)
        self.signal = number
        if is_second or not self.has_trained:
            raise SystemExit(128 + number)


class _Lines:
    """A line for each report, and a bar below them on a terminal."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._n_lines = 0
        self._bar: Any = None

    def __call__(self, report: "Report", total_steps: int) -> None:
        if self._bar is None:
            self._bar = self.console.track(total=total_steps, initial=report.step, unit="steps")
        self._bar.update(report.step - self._bar.n)
        self._bar.set_postfix_str(f"{report.tokens_per_second:.0f} tokens/s", refresh=False)
        if self._n_lines % _N_LINES == 0:
            self.console.tell(_HEADER)
        self._n_lines += 1
        each = report.n_tokens / report.step
        left = (total_steps - report.step) * each / report.tokens_per_second
        self.console.tell(
            f"{report.step:8d} {report.step / total_steps:7.1%} {report.n_tokens / 1e6:8.2f}M "
            f"{report.loss:11.4f} {report.gradient_norm:6.2f} {report.learn_rate:8.5f} "
            f"{report.tokens_per_second:7.0f} "
            f"{int(left // 3600):3d}h {int(left % 3600 // 60):02d}m"
        )
        if report.dev is not None:
            forward, backward, mean = report.dev.perplexities
            self.console.inform(
                f"Exact held-out perplexity {mean:.2f} (forward {forward:.2f}, backward "
                f"{backward:.2f}; {count_things(report.dev.n_sequences, 'sequence')}, "
                f"{count_things(report.dev.n_targets, 'prediction')})"
                + (", the best so far" if report.is_best else "")
            )

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
