"""Make forked children safe and cheap: `nlp.pipe(n_process=2)` forks on Linux.

Installed once, when this module is first imported.
"""

import os
import threading
from contextlib import suppress
from typing import Protocol
from weakref import WeakSet

import torch

# One for all that is built once, one for all that grows with use. They are short or rare,
# and whoever holds them stays picklable. A fork waits for them: a child must not get
# something half made.
BUILD_LOCK = threading.RLock()
CACHE_LOCK = threading.RLock()


class Preparable(Protocol):
    """Something that children should share."""

    def prepare(self) -> None:
        """Build what the first use would build."""


_shared: "WeakSet[Preparable]" = WeakSet()


def share_at_fork(preparable: Preparable) -> None:
    """Have something prepared before each fork, so that children share its memory.

    preparable (Preparable): what to prepare; not kept alive by this.
    """
    _shared.add(preparable)


def _before() -> None:
    for preparable in list(_shared):
        # A fork is no place to complain: the first use raises it again.
        with suppress(ValueError):
            preparable.prepare()
    BUILD_LOCK.acquire()
    CACHE_LOCK.acquire()


def _after() -> None:
    CACHE_LOCK.release()
    BUILD_LOCK.release()


def _after_in_child() -> None:
    _after()
    # A pool of threads does not survive the fork, and the child's first parallel
    # operation would wait for it for ever. The parent keeps its own number.
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
