"""Threads for the engine, each with one of torch's threads, and hooks that make forks safe.

torch's own threads share each small operation and wait for each other after it. Tasks that last
as long as a batch wait once.
"""

import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from multiprocessing import parent_process
from threading import get_native_id
from typing import Any, Callable, Dict, List, Optional, Sequence, TypeVar
from weakref import WeakSet

import torch

logger = logging.getLogger("spacy_elmo")

Result = TypeVar("Result")

# Held while weights are loaded or packed, and around each access to a word cache. A fork takes
# both, so that no child gets something half made. `LOAD_LOCK` is taken first.
LOAD_LOCK = threading.RLock()
CACHE_LOCK = threading.RLock()

# By number of threads. None after the monkey patch of gevent or eventlet: greenlets would change
# torch's modes and its number of threads for each other.
_pools: Dict[int, Optional[ThreadPoolExecutor]] = {}
_pools_lock = threading.Lock()


def choose_n_threads(n_threads: int) -> int:
    """The number of threads as configured; for 0 as many as torch uses, and one in a child process,
    which has siblings."""
    if n_threads:
        return n_threads
    return 1 if parent_process() is not None else torch.get_num_threads()


def run_parallel(tasks: Sequence[Callable[[], Result]], n_threads: int) -> List[Result]:
    """Run independent tasks without gradients, `n_threads` at a time, in threads in which torch
    uses one thread. Results are in order."""
    is_one = min(n_threads, len(tasks)) == 1 and torch.get_num_threads() == 1
    pool = None if is_one else _get_pool(n_threads)
    if pool is None:
        return [task() for task in tasks]
    return list(pool.map(_run_task, tasks))


def _run_task(task: Callable[[], Result]) -> Result:
    with torch.inference_mode():
        return task()


def _get_pool(n_threads: int) -> Optional[ThreadPoolExecutor]:
    with _pools_lock:
        if n_threads not in _pools:
            n_before = torch.get_num_threads()
            pool = ThreadPoolExecutor(n_threads, "elmo", initializer=_use_one_thread)
            # All start now: the setting of a worker becomes torch's default, which is restored.
            started = threading.Barrier(n_threads)
            ids = list(pool.map(lambda _: (started.wait(), get_native_id())[1], range(n_threads)))
            torch.set_num_threads(n_before)
            _pools[n_threads] = None if get_native_id() in ids else pool
        return _pools[n_threads]


def _use_one_thread() -> None:
    # The first call in a thread applies torch's default, so the setting must come second.
    torch.get_num_threads()
    torch.set_num_threads(1)


_preparable: "WeakSet[Any]" = WeakSet()


def share_at_fork(preparable: Any) -> None:
    """Call an object's `prepare`, which does what its first use would do, before each fork, so that
    children share its memory."""
    _register_hooks()
    with LOAD_LOCK:
        _preparable.add(preparable)


def _before_fork() -> None:
    LOAD_LOCK.acquire()
    CACHE_LOCK.acquire()
    for preparable in list(_preparable):
        try:
            preparable.prepare()
        except Exception as err:
            # The first use raises the same error.
            logger.debug("Not prepared for a fork: %r", err)


def _after_fork() -> None:
    CACHE_LOCK.release()
    LOAD_LOCK.release()


def _after_fork_in_child() -> None:
    global _pools_lock
    _after_fork()
    # Threads do not survive a fork: neither ours nor torch's, whose first parallel operation would
    # wait for them forever.
    _pools_lock = threading.Lock()
    _pools.clear()
    torch.set_num_threads(1)


@cache
def _register_hooks() -> None:
    """Once, and not at import: who only has the package installed keeps the number of threads."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
        )
