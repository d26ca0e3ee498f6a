"""Make forked children safe and cheap: `nlp.pipe(n_process=2)` forks on Linux.

Installed once, when this module is first imported.
"""

import os
from contextlib import suppress
from typing import Protocol
from weakref import WeakSet

import torch


class Loadable(Protocol):
    """Something that loads its weights when asked."""

    def ensure_ready(self) -> None:
        """Load the weights if that was not done."""


_waiting: "WeakSet[Loadable]" = WeakSet()


def load_before_fork(loadable: Loadable) -> None:
    """Have weights loaded before the next fork, so that children share them.

    loadable (Loadable): what to load; not kept alive by this.
    """
    _waiting.add(loadable)


def _load_waiting() -> None:
    for loadable in list(_waiting):
        _waiting.discard(loadable)
        # A fork is no place to complain: the first use raises it again.
        with suppress(ValueError):
            loadable.ensure_ready()


def _use_one_thread() -> None:
    # A pool of threads does not survive the fork, and the child's first parallel
    # operation would wait for it for ever. The parent keeps its own number.
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_load_waiting, after_in_child=_use_one_thread)
