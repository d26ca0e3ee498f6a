"""What commands print: results on the standard output, all else on the standard error."""

import os
import re
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Iterator, List, Literal, Optional, Sequence

from wasabi import Printer, color, table

from ..utils import format_seconds

# What a bar says, whatever it counts: "corpus.txt  45%|####      | 450/1000 [00:03<00:04, ...]".
_BAR = "{desc}{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} {unit} [{elapsed}<{remaining}{postfix}]"
_COUNT = "{desc}{n_fmt} {unit} [{elapsed}{postfix}]"
# "1,000", "93.1 %", "1.2e-05", "93.10 ± 0.20".
_NUMBER = re.compile(r"[-+]?\d[\d.,]*(e[-+]?\d+)?( ?%)?( ± [\d.]+( ?%)?)?")
# Colours and the like.
_ESCAPES = re.compile(r"\x1b\[[\d;]*m")


class Console:
    """The output of one command. Its clock starts when it is made.

    is_quiet (bool): whether to print results and errors only.
    """

    def __init__(self, is_quiet: bool = False) -> None:
        self.is_quiet = is_quiet
        self._start = time.perf_counter()
        self._printer = _make_printer(sys.stderr)

    # ---- results

    def show(self, text: str) -> None:
        """text (str): of a result."""
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        _write(text.encode(encoding, "backslashreplace").decode(encoding), sys.stdout)

    def show_title(self, title: str) -> None:
        """title (str): of the results that follow."""
        printer = _make_printer(sys.stdout)
        # wasabi's is bold wherever it goes.
        line = printer.divider(title)
        self.show(line if printer.show_color else _ESCAPES.sub("", line))

    def show_table(
        self, rows: Sequence[Sequence[Any]], header: Sequence[str], max_width: int = 90
    ) -> None:
        """Show a table, as `format_table` makes it."""
        self.show(format_table(rows, header, max_width))

    def mark(self, word: str, name: str = "green") -> str:
        """word (str): to emphasise in a result. name (str): its colour on a terminal.
        RETURNS (str): the word in that colour; in a file or a pipe, in brackets."""
        has_color = _make_printer(sys.stdout).show_color
        return color(word, fg=name, bold=True) if has_color else f"[{word}]"

    # ---- messages

    def inform(self, text: str) -> None:
        """text (str): that is good to know."""
        self.tell(self._printer.info(text))

    def warn(self, text: str) -> None:
        """text (str): that may be a problem."""
        self.tell(self._printer.warn(text))

    def tell(self, text: str) -> None:
        """text (str): how far the work is, where no bar is drawn, or above the bars."""
        if not self.is_quiet:
            _write(text, sys.stderr)

    def fail(self, text: str) -> None:
        """text (str): of an error, which is printed in any case."""
        _write(self._printer.fail(text), sys.stderr)

    def finish(self, *paths: Optional[Path], summary: str = "") -> None:
        """Print the closing line of a command: what was written, and how long it took.

        paths (Optional[Path]): written files and folders; None for those that were not wanted.
        summary (str): what there is to say of them.
        """
        names = ", ".join(str(path) for path in paths if path is not None)
        spent = format_seconds(time.perf_counter() - self._start)
        title = f"Wrote {names} in {spent}" if names else f"Done in {spent}"
        self.tell(self._printer.good(title, summary))

    # ---- progress

    @property
    def has_bars(self) -> bool:
        """Whether progress is drawn: on a terminal, if it is wanted."""
        return not self.is_quiet and _is_terminal(sys.stderr)

    def track(
        self, items: Any = None, *, unit: str, total: Optional[int] = None, **more: Any
    ) -> Any:
        """Draw a bar, or nothing (see `has_bars`).

        items (Any): to go through, or None for a bar that is moved by its `update`.
        unit (str): what is counted, in the plural. total (Optional[int]): how many there are.
        more (Any): arguments of `tqdm`.
        RETURNS (Any): a `tqdm`.
        """
        from tqdm import tqdm

        if total is None and hasattr(items, "__len__"):
            total = len(items)
        if more.get("desc"):
            more["desc"] = f"{more['desc']}: "
        return tqdm(
            items,
            total=total,
            unit=unit,
            bar_format=_COUNT if total is None else _BAR,
            dynamic_ncols=True,
            disable=not self.has_bars,
            file=sys.stderr,
            **more,
        )

    @contextmanager
    def showing_warnings(self) -> Iterator[None]:
        """Print Python's warnings that are ours as messages; none at all if quiet."""
        old = warnings.formatwarning

        def show(message: Any, category: Any, *place: Any, **line: Any) -> str:
            if not str(message).startswith("[WL"):
                return old(message, category, *place, **line)
            return f"{self._printer.warn(str(message))}\n"

        warnings.formatwarning = show
        try:
            with warnings.catch_warnings():
                if self.is_quiet:
                    warnings.simplefilter("ignore")
                yield
        finally:
            warnings.formatwarning = old


def format_table(rows: Sequence[Sequence[Any]], header: Sequence[str], max_width: int = 90) -> str:
    """Make a table, with numbers to the right.

    rows (Sequence[Sequence[Any]]): cells. header (Sequence[str]): of the columns.
    max_width (int): characters of a column, at most.
    RETURNS (str): its lines.
    """
    cells = [[str(cell) for cell in row] for row in rows]
    aligns: List[Literal["r", "l"]] = [
        "r" if _are_numbers(column) else "l" for column in zip(*cells)
    ]
    return table(cells, header=header, divider=True, max_col=max_width, aligns=aligns)


def _write(text: str, file: Optional[IO[str]]) -> None:
    """Above the bars, if there are any. Once the reader has gone (`| head`), and where there never
    was one (`2>&-`), the text is dropped, and the command goes on: it may have files to write."""
    from tqdm import tqdm

    if file is None:
        return
    try:
        # tqdm's own way to its lock hides an interrupt behind an error.
        with tqdm.get_lock():
            tqdm.write(text, file=file, nolock=True)
        file.flush()
    except OSError as err:
        # What is buffered would fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())
        if not isinstance(err, BrokenPipeError):
            raise


def _is_terminal(file: Optional[IO[str]]) -> bool:
    """file (Optional[IO[str]]): None if it was closed before Python began."""
    return file is not None and file.isatty()


def _make_printer(file: Optional[IO[str]]) -> Printer:
    """RETURNS (Printer): wasabi's, which returns text: in colours where they can be seen."""
    printer = Printer(no_print=True)
    printer.show_color = printer.show_color and _is_terminal(file) and not os.getenv("NO_COLOR")
    return printer


def _are_numbers(cells: Sequence[str]) -> bool:
    return all(_NUMBER.fullmatch(cell) for cell in cells if cell) and any(cells)
