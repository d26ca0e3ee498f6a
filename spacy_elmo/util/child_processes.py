"""Child processes that end when they are not wanted any more."""

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import Connection, wait


def end_with_parent(stop: Connection) -> None:
    """Have this child process end at once when its parent does, even killed, which tells
    nobody; or when its parent closes the other end of `stop`. Ctrl-C, which reaches the whole
    group, is left to the parent. Nothing is cleaned up: for work that may be killed.

    stop (Connection): to be read; nothing is ever sent.
    """
    # No Event: setting one waits for those who wait for it, killed ones too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(stop,), daemon=True).start()


def _watch(stop: Connection) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel, stop])
    os._exit(1)
