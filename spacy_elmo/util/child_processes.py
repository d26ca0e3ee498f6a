"""Child processes that end when their parent does."""

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import Connection, wait
from typing import Optional


def end_with_parent(stop: Optional[Connection] = None) -> None:
    """End this child process at once when its parent ends, even if that is killed; or when the
    parent closes the other end of `stop`. Ctrl-C reaches the whole process group, and is left
    to the parent. Nothing is cleaned up: only for work that may be killed.

    stop (Optional[Connection]): the reading end of a pipe through which nothing is sent.
    """
    # Not an Event: setting one waits for all processes that wait for it, killed ones too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(stop,), daemon=True).start()


def _watch(stop: Optional[Connection]) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel] if stop is None else [parent.sentinel, stop])
    os._exit(1)
