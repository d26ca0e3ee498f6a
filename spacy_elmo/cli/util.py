"""What the commands share."""

from contextlib import contextmanager
from typing import Iterator

from wasabi import msg


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Print a message of ours and exit with 1, instead of a traceback."""
    try:
        yield
    except ValueError as err:
        msg.fail(str(err), exits=1)
