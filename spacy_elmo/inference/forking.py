"""Make forked children safe and cheap: `nlp.pipe(n_process=2)` forks on Linux.

Installed once, when this module is first imported.
"""

import logging
import os
import signal
import threading
from contextlib import suppress
from typing import Protocol
from weakref import WeakSet

import torch

from ..bilm.build_lock import BUILD_LOCK

logger = logging.getLogger("spacy_elmo")

# Seconds: the fork is over.
_SOON = 0.01

# For all that grows with use. As `BUILD_LOCK`, after which it is taken.
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
    with BUILD_LOCK:
        _shared.add(preparable)


# Whether Ctrl-C was pressed while something was prepared.
_is_interrupted = False


def _before() -> None:
    BUILD_LOCK.acquire()
    try:
        for preparable in list(_shared):
            _prepare(preparable)
    finally:
        # Python goes on with the fork whatever is raised here.
        CACHE_LOCK.acquire()


def _prepare(preparable: Preparable) -> None:
    global _is_interrupted
    try:
        preparable.prepare()
    except KeyboardInterrupt:
        _is_interrupted = True
    except Exception as err:
        # A fork is no place to complain: the first use raises it again.
        logger.debug("Not prepared for a fork: %r", err)


def _after() -> None:
    for lock in (CACHE_LOCK, BUILD_LOCK):
        # Not taken if `_before` was interrupted before its first line.
        with suppress(RuntimeError):
            lock.release()


def _after_in_parent() -> None:
    global _is_interrupted
    _after()
    if _is_interrupted:
        _is_interrupted = False
        # Raised here it would be lost.
        main = threading.main_thread().ident
        threading.Timer(_SOON, signal.pthread_kill, (main, signal.SIGINT)).start()


def _after_in_child() -> None:
    global _is_interrupted
    _is_interrupted = False
    try:
        _after()
    finally:
        # A pool of threads does not survive the fork, and the child's first parallel
        # operation would wait for it for ever. The parent keeps its own number.
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
