"""Parts that several commands share: messages, exit codes, checks of outputs."""

import os
import re
import sys
import tempfile
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Callable, Iterator, List, Literal, Optional, Sequence

import typer
from wasabi import Printer, color, table

# Exit codes. Typer's own are 0 for success, and 2 for wrong usage.
FAILED, INTERRUPTED = 1, 130

# "1,000", "93.1 %", "1.2e-05", "93.10 ± 0.20".
_NUMBER = re.compile(r"[-+]?\d[\d.,]*(e[-+]?\d+)?( ?%)?( ± [\d.]+( ?%)?)?")


@contextmanager
def exit_on_error(is_quiet: bool = False, interrupted: str = "") -> Iterator["Console"]:
    """Run a command: print a user's mistake or a problem of the system as a message, without a
    traceback, and end with its exit code. Yields what the command prints through."""
    console = Console(is_quiet)
    try:
        with warnings.catch_warnings():
            if is_quiet:
                warnings.simplefilter("ignore")
            warnings.showwarning = lambda message, *args, **kwargs: console.warn(str(message))
            yield console
    except KeyboardInterrupt:
        console.fail(interrupted or "Interrupted. Files that were written are complete.")
        raise SystemExit(INTERRUPTED) from None
    except Exception as err:
        message = _describe(err)
        if message is None:
            raise
        console.fail(message)
        raise SystemExit(FAILED) from None


def _describe(err: Exception) -> Optional[str]:
    """What to print; None for errors of the program."""
    # torch raises a RuntimeError for the memory of a CPU.
    is_torch = isinstance(err, RuntimeError) and re.search("allocate|out of memory", str(err))
    if isinstance(err, MemoryError) or is_torch:
        return (
            f"There is not enough memory: {next(iter(str(err).splitlines()), 'none left')}. Use "
            "a smaller model or smaller batches."
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
    """Print results on the standard output; unless quiet, all else on the standard error."""

    def __init__(self, is_quiet: bool = False) -> None:
        self.is_quiet = is_quiet
        self._start = time.perf_counter()
        self._printer = _make_printer(sys.stderr)

    def show(self, text: str) -> None:
        """Print a result."""
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        _write(text.encode(encoding, "backslashreplace").decode(encoding), sys.stdout)

    def show_title(self, title: str) -> None:
        """Print the title of the results that follow."""
        self.show("\n" + f" {title} ".center(79, "=") + "\n")

    def show_table(self, rows: Sequence[Sequence[Any]], header: Sequence[str]) -> None:
        """Print a table of results."""
        self.show(format_table(rows, header))

    def mark(self, word: str, name: str = "green") -> str:
        """Emphasise a word of a result: by a colour; in a file or a pipe, by brackets."""
        has_color = _make_printer(sys.stdout).show_color
        return color(word, fg=name, bold=True) if has_color else f"[{word}]"

    def inform(self, text: str) -> None:
        """Print a piece of information."""
        self.tell(self._printer.info(text))

    def warn(self, text: str) -> None:
        """Print a warning."""
        self.tell(self._printer.warn(text))

    def tell(self, text: str) -> None:
        """Print progress, above the bars."""
        if not self.is_quiet:
            _write(text, sys.stderr)

    def fail(self, text: str) -> None:
        """Print an error, in any case."""
        _write(self._printer.fail(text), sys.stderr)

    def finish(self, *paths: Optional[Path], summary: str = "") -> None:
        """Print the last line of a command: the written files and folders (None for those that
        were not wanted), and further information."""
        names = ", ".join(str(path) for path in paths if path is not None)
        spent = _format_seconds(time.perf_counter() - self._start)
        title = f"Wrote {names} in {spent}" if names else f"Done in {spent}"
        self.tell(self._printer.good(title, summary))

    def track(self, items: Any = None, **settings: Any) -> Any:
        """A `tqdm`, which draws nothing without a terminal. Without items, `update` moves it."""
        from tqdm import tqdm

        is_drawn = not self.is_quiet and sys.stderr is not None and sys.stderr.isatty()
        return tqdm(items, dynamic_ncols=True, disable=not is_drawn, **settings)


def format_table(rows: Sequence[Sequence[Any]], header: Sequence[str]) -> str:
    """wasabi's table, with numbers to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    are_numbers = [all(_NUMBER.fullmatch(c) for c in column if c) for column in zip(*cells)]
    aligns: List[Literal["r", "l"]] = ["r" if are else "l" for are in are_numbers]
    return table(cells, header=header, divider=True, max_col=90, aligns=aligns)


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
    """Check that files (None for those that are not wanted) can be written, before the work."""
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
    """Name the file or folder that is written in errors of the system."""
    from ..errors import Errors

    try:
        yield
    except OSError as err:
        raise ValueError(Errors.EL145.format(path=path, error=err)) from err


def read_numbers(text: str, kind: Callable[[str], Any] = float) -> List[Any]:
    """Read numbers with commas between, each once."""
    try:
        return list(dict.fromkeys(kind(number) for number in text.split(",")))
    except ValueError:
        raise typer.BadParameter(f"{text!r}: expected numbers with commas, such as 1,8") from None


def _format_seconds(seconds: float) -> str:
    """Write a duration as "3.2 s", "2 min 5 s" or "1 h 2 min"."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"
