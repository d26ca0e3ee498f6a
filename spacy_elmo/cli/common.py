"""Functions that several commands use."""

import os
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import typer
from wasabi import msg

from ..errors import Errors
from ..util.memory import is_out_of_memory

# More than any machine has; each costs memory.
MOST_THREADS = 1024


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Print an error as a message and exit with 1, without a traceback."""
    try:
        yield
    except ValueError as err:
        msg.fail(str(err), exits=1)
    except OSError as err:
        # The error of a file that is already open, as on a full disk, has no name.
        where = f" ('{err.filename}')" if err.filename else ""
        msg.fail(Errors.EL158.format(error=f"{err.strerror or err}{where}"), exits=1)
    except (MemoryError, RuntimeError) as err:
        if not is_out_of_memory(err):
            raise
        error = next(iter(str(err).splitlines()), "the system gives no more")
        msg.fail(Errors.EL159.format(error=error), exits=1)


def require_writable(*paths: Optional[Path]) -> None:
    """Check before the work that its results can be written.

    paths (Optional[Path]): files, or None for those that are not wanted. Missing parent
        folders are fine: they are created with the file.
    RAISES (ValueError): EL165 if one cannot be written.
    """
    for path in paths:
        problem = None if path is None else _find_problem(path)
        if problem is not None:
            raise ValueError(Errors.EL165.format(path=path, problem=problem))


def _find_problem(path: Path) -> Optional[str]:
    if path.is_dir():
        return "it is a folder"
    place = path
    while not place.exists() and place != place.parent:
        place = place.parent
    if place != path and not place.is_dir():
        return f"'{place}' is not a folder"
    return None if os.access(place, os.W_OK) else f"'{place}' is not writable"


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

    try:
        overrides = parse_config_overrides(arguments)
    except ClickException as err:
        # Typer has a click of its own, which does not know spaCy's.
        raise typer.BadParameter(err.format_message()) from err
    return load_config(path, overrides)


def read_numbers(text: str, kind: Callable[[str], Any] = float) -> List[Any]:
    """text (str): numbers with commas between. kind (Callable[[str], Any]): int or float.
    RETURNS (List[Any]): the numbers, each once. RAISES (typer.BadParameter): for anything else."""
    try:
        return list(dict.fromkeys(kind(number) for number in text.split(",")))
    except ValueError:
        raise typer.BadParameter(f"{text!r}: expected numbers with commas, such as 1,8") from None
