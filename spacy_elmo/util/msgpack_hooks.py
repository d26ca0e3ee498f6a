"""`kept_hooks`: what srsly asks other packages before it packs or unpacks anything, asked once.

srsly looks through the entry points of all installed packages for each message, and a doc with span
groups is several: of 12,500 such docs reading took 24 seconds, of which 23 went into that.
"""

from contextlib import contextmanager
from typing import Iterator

from srsly import msgpack

_REGISTRIES = (msgpack.msgpack_encoders, msgpack.msgpack_decoders)
_LOOK_UP = "get_all"


@contextmanager
def kept_hooks() -> Iterator[None]:
    """Have srsly take the hooks that are there now, in all threads. Several may be open at a time:
    when the first is left, srsly looks again, and finds the same."""
    try:
        for registry in _REGISTRIES:
            found = registry.get_all()
            # Into the object, in front of its class's method.
            vars(registry)[_LOOK_UP] = lambda found=found: found
        yield
    finally:
        for registry in _REGISTRIES:
            vars(registry).pop(_LOOK_UP, None)
