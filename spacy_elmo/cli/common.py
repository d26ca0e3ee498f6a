"""Parts that several commands share: options, messages, exit codes, checks of outputs."""

import io
import logging
import os
import re
import sys
import tempfile
import time
import warnings
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import IO, Any, Callable, Dict, Iterator, List, Literal, Optional, Sequence

import typer
from wasabi import Printer, color, table

# Exit codes. Typer's own are 0 for success, and 2 for wrong usage.
FAILED, INTERRUPTED = 1, 130
# More than any machine has; each costs memory.
MOST_THREADS = 1024

QUIET = typer.Option(False, "--quiet", "-Q", help="Print results and errors only")
WEIGHTS = typer.Option(
    "", help="Folder of a biLM, or a model's name", show_default="the bundled model"
)
JSON = typer.Option(None, help="JSON file to write", show_default="none", dir_okay=False)
LANG = typer.Option("en", help="Language code of the tokenizer")
WEIGHTS_LANG = typer.Option(
    "", help="Language code of the tokenizer", show_default="that of the weights"
)
SEEDS = typer.Option("0,1,2", help="Seeds (whole numbers), with commas")

# "1,000", "93.1 %", "1.2e-05", "93.10 ± 0.20".
_NUMBER = re.compile(r"[-+]?\d[\d.,]*(e[-+]?\d+)?( ?%)?( ± [\d.]+( ?%)?)?")


@contextmanager
def exit_on_error(is_quiet: bool = False, interrupted: str = "") -> Iterator["Console"]:
    """Run a command: print a user's mistake or a problem of the system as a message, without a
    traceback, and end with its exit code.

    is_quiet (bool): whether to print results and errors only.
    interrupted (str): printed after Ctrl-C.
    YIELDS (Console): what the command prints through.
    """
    console = Console(is_quiet)
    try:
        with warnings.catch_warnings():
            if is_quiet:
                warnings.simplefilter("ignore")
            warnings.showwarning = lambda message, *args, **kwargs: console.warn(str(message))
            yield console
    except KeyboardInterrupt:
        console.fail(interrupted or "Interrupted. Only whole files were written.")
        raise SystemExit(INTERRUPTED) from None
    except Exception as err:
        message = _describe(err)
        if message is None:
            raise
        console.fail(message)
        raise SystemExit(FAILED) from None


def _describe(err: Exception) -> Optional[str]:
    """RETURNS (Optional[str]): What to print; None for errors of the program."""
    if isinstance(err, (MemoryError, RuntimeError)) and _is_out_of_memory(err):
        return (
            f"There is not enough memory: {next(iter(str(err).splitlines()), 'none left')}. Make "
            "the model or the batches smaller."
        )
    if isinstance(err, ValueError) or re.match(r"\[EL\d{3}\]", str(err)):
        return str(err)
    # spaCy raises it where a tokenizer's package is missing.
    if isinstance(err, ImportError) and err.name is None:
        return str(err)
    # The reader of a pipe has gone (`| head`): Typer ends quietly.
    if isinstance(err, OSError) and not isinstance(err, BrokenPipeError):
        where = f" ('{err.filename}')" if err.filename else ""
        return (
            f"A file cannot be read or written: {err.strerror or err}{where}. Check the path, its "
            "permissions and the free disk space. Existing files are unchanged."
        )
    return None


class Console:
    """Print results on the standard output, all else on the standard error.

    is_quiet (bool): whether to print results and errors only.
    """

    def __init__(self, is_quiet: bool = False) -> None:
        self.is_quiet = is_quiet
        self._start = time.perf_counter()
        self._printer = _make_printer(sys.stderr)

    def show(self, text: str) -> None:
        """text (str): of a result."""
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        _write(text.encode(encoding, "backslashreplace").decode(encoding), sys.stdout)

    def show_title(self, title: str) -> None:
        """title (str): of the results that follow."""
        self.show("\n" + f" {title} ".center(79, "=") + "\n")

    def show_table(
        self, rows: Sequence[Sequence[Any]], header: Sequence[str], max_width: int = 90
    ) -> None:
        """Show a table, see `format_table`."""
        self.show(format_table(rows, header, max_width))

    def mark(self, word: str, name: str = "green") -> str:
        """word (str): to emphasise in a result. name (str): its colour on a terminal.
        RETURNS (str): the word in that colour; in a file or a pipe, in brackets."""
        has_color = _make_printer(sys.stdout).show_color
        return color(word, fg=name, bold=True) if has_color else f"[{word}]"

    def inform(self, text: str) -> None:
        """text (str): information."""
        self.tell(self._printer.info(text))

    def warn(self, text: str) -> None:
        """text (str): of a warning."""
        self.tell(self._printer.warn(text))

    def tell(self, text: str) -> None:
        """text (str): progress, printed above the bars."""
        if not self.is_quiet:
            _write(text, sys.stderr)

    def fail(self, text: str) -> None:
        """text (str): of an error, which is printed in any case."""
        _write(self._printer.fail(text), sys.stderr)

    def finish(self, *paths: Optional[Path], summary: str = "") -> None:
        """Print the last line of a command.

        paths (Optional[Path]): written files and folders; None for those that were not wanted.
        summary (str): further information.
        """
        names = ", ".join(str(path) for path in paths if path is not None)
        spent = _format_seconds(time.perf_counter() - self._start)
        title = f"Wrote {names} in {spent}" if names else f"Done in {spent}"
        self.tell(self._printer.good(title, summary))

    @property
    def has_bars(self) -> bool:
        """Whether bars are drawn: on a terminal, unless quiet."""
        return not self.is_quiet and sys.stderr is not None and sys.stderr.isatty()

    def track(self, items: Any = None, **settings: Any) -> Any:
        """items (Any): to iterate over, or None for a bar that is moved by its `update`. settings
        (Any): of `tqdm`. RETURNS (Any): a `tqdm`, which draws nothing without a terminal."""
        from tqdm import tqdm

        return tqdm(items, dynamic_ncols=True, disable=not self.has_bars, **settings)


def format_table(rows: Sequence[Sequence[Any]], header: Sequence[str], max_width: int = 90) -> str:
    """RETURNS (str): wasabi's table, with numbers to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    are_numbers = [all(_NUMBER.fullmatch(c) for c in column if c) for column in zip(*cells)]
    aligns: List[Literal["r", "l"]] = ["r" if are else "l" for are in are_numbers]
    return table(cells, header=header, divider=True, max_col=max_width, aligns=aligns)


def _write(text: str, file: Optional[IO[str]]) -> None:
    from tqdm import tqdm

    # None if it was closed before Python began.
    if file is not None:
        tqdm.write(text, file=file)
        file.flush()


def _make_printer(file: Optional[IO[str]]) -> Printer:
    """wasabi's, which returns text, coloured on a terminal."""
    printer = Printer(no_print=True)
    is_terminal = file is not None and file.isatty()
    printer.show_color = printer.show_color and is_terminal and not os.getenv("NO_COLOR")
    return printer


def require_output(*paths: Optional[Path]) -> None:
    """Check that files can be written, before the work.

    paths (Optional[Path]): the files; None for those that are not wanted.
    RAISES (ValueError): EL145 if one cannot.
    """
    for path in paths:
        if path is not None:
            with writing(path):
                if path.is_dir() or str(path) == "-":
                    raise OSError("it is not the name of a file")
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.is_file() or not path.exists():
                    tempfile.TemporaryFile(dir=path.parent).close()


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """path (Path): what is written. RAISES (ValueError): EL145 for an error of the system."""
    from ..errors import Errors

    try:
        yield
    except OSError as err:
        raise ValueError(Errors.EL145.format(path=path, error=err)) from err


def read_pretraining_config(path: Path, arguments: List[str]) -> Dict[str, Any]:
    """Read a pretraining config with its defaults and the command line's overrides.

    path (Path): the file.
    arguments (List[str]): such as ["--training.seed", "1"].
    RETURNS (Dict[str, Any]): the sections, interpolated.
    RAISES (ValueError): as `load_config`.
    """
    from click import ClickException
    from spacy.cli._util import parse_config_overrides

    from ..pretraining.config_files import load_config

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


def read_numbers(text: str, kind: Callable[[str], Any] = float) -> List[Any]:
    """text (str): numbers with commas between. kind (Callable[[str], Any]): int or float.
    RETURNS (List[Any]): the numbers, each once. RAISES (typer.BadParameter): for anything else."""
    try:
        return list(dict.fromkeys(kind(number) for number in text.split(",")))
    except ValueError:
        raise typer.BadParameter(f"{text!r}: expected numbers with commas, such as 1,8") from None


def set_log_level(is_quiet: bool) -> None:
    """Print the library's log, or with `is_quiet` only its errors."""
    logging.basicConfig(format="%(message)s")
    logging.getLogger("spacy_elmo").setLevel(logging.ERROR if is_quiet else logging.INFO)


def _is_out_of_memory(err: BaseException) -> bool:
    # torch raises a RuntimeError for the memory of a CPU.
    return isinstance(err, MemoryError) or bool(re.search("allocate|out of memory", str(err)))


def _format_seconds(seconds: float) -> str:
    """Write a duration as "3.2 s", "2 min 5 s" or "1 h 2 min"."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"
