"""What the commands share."""

from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import typer
from wasabi import msg

from ..errors import Errors


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Print a message of ours and exit with 1, instead of a traceback."""
    try:
        yield
    except ValueError as err:
        msg.fail(str(err), exits=1)
    except OSError as err:
        msg.fail(Errors.EL158.format(path=err.filename, error=err.strerror or err), exits=1)
    except (MemoryError, RuntimeError) as err:
        # torch has a class of its own for the memory of a GPU alone.
        if isinstance(err, RuntimeError) and "memory" not in str(err):
            raise
        msg.fail(Errors.EL159.format(error=str(err).splitlines()[0] if str(err) else "-"), exits=1)


def read_pretraining_config(path: Path, arguments: List[str]) -> Dict[str, Any]:
    """Read a pretraining config with its defaults and the command line's overrides.

    path (Path): the file.
    arguments (List[str]): such as ["--training.seed", "1"].
    RETURNS (Dict[str, Any]): the sections, interpolated.
    RAISES (ValueError): EL030 if there is no file, EL098 if it is no config.
    """
    from spacy.cli._util import parse_config_overrides

    from ..pretraining_config import load_config

    return load_config(path, parse_config_overrides(arguments))


def read_numbers(text: str, kind: Callable[[str], Any] = float) -> List[Any]:
    """text (str): numbers with commas between. kind (Callable[[str], Any]): int or float.
    RETURNS (List[Any]): the numbers, each once. RAISES (typer.BadParameter): for anything else."""
    try:
        return list(dict.fromkeys(kind(number) for number in text.split(",")))
    except ValueError:
        raise typer.BadParameter(f"{text!r}: expected numbers with commas, such as 1,8") from None
