"""Functions that several commands use."""

import io
import logging
import re
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import typer

from ..errors import Errors, Warnings
from ..utils import is_out_of_memory
from .console import Console

# Exit codes. Typer's own are 0 for what is done, and 2 for wrong usage.
FAILED, INTERRUPTED = 1, 130
# More than any machine has; each costs memory.
MOST_THREADS = 1024


@contextmanager
def exit_on_error(is_quiet: bool = False, interrupted: str = "") -> Iterator[Console]:
    """Run a command: print an error as a message, without a traceback, and end with its exit
    code. Errors that are mistakes of ours keep their traceback.

    is_quiet (bool): whether to print results and errors only.
    interrupted (str): printed after Ctrl-C, if there is more to say than WL057.
    YIELDS (Console): what the command prints through.
    """
    console = Console(is_quiet)
    try:
        with console.showing_warnings():
            yield console
    except KeyboardInterrupt:
        console.fail(interrupted or Warnings.WL057)
        raise SystemExit(INTERRUPTED) from None
    except Exception as err:
        message = _describe(err)
        if message is None:
            raise
        console.fail(message)
        raise SystemExit(FAILED) from None


def _describe(err: Exception) -> Optional[str]:
    """RETURNS (Optional[str]): What to print; None for what nobody expects."""
    if isinstance(err, ValueError) or re.match(r"\[EL\d{3}\]", str(err)):
        return str(err)
    # Raised by hand, as spaCy does where a tokenizer's package is missing.
    if isinstance(err, ImportError) and err.name is None:
        return str(err)
    if isinstance(err, OSError):
        # The error of a file that is already open, as on a full disk, has no name.
        where = f" ('{err.filename}')" if err.filename else ""
        return Errors.EL158.format(error=f"{err.strerror or err}{where}")
    if isinstance(err, (MemoryError, RuntimeError)) and is_out_of_memory(err):
        error = next(iter(str(err).splitlines()), "the system gives no more")
        return Errors.EL159.format(error=error)
    return None


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
        # Typer has a click of its own, which does not know spaCy's.
        raise typer.BadParameter(err.format_message()) from err
    except SystemExit as err:
        # For spaCy this is an error of another kind, with exit code 1.
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
    """Print what the library logs, or if it should be quiet (is_quiet), its errors only."""
    logging.basicConfig(format="%(message)s")
    logging.getLogger("spacy_elmo").setLevel(logging.ERROR if is_quiet else logging.INFO)
