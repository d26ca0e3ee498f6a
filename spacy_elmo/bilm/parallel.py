"""Run pieces of work side by side, each on one thread.

torch's own threads share each small operation and wait for each other after it: with a
neighbour on the machine, everybody waits for the one that lost its processor. Pieces
that last as long as a batch wait once.
"""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import parent_process
from typing import Callable, Iterator, List, Optional, Sequence, TypeVar

import torch

Result = TypeVar("Result")

_lock = threading.Lock()
_pool: Optional[ThreadPoolExecutor] = None
_pool_size = 0


def choose_n_threads(n_threads: int) -> int:
    """n_threads (int): what the config says; 0 to choose. RETURNS (int): as many; chosen,
    as many as torch would use, and one in a child process, which has siblings."""
    if n_threads:
        return n_threads
    return 1 if parent_process() is not None else torch.get_num_threads()


def run_parallel(tasks: Sequence[Callable[[], Result]], n_threads: int) -> List[Result]:
    """Run tasks without gradients.

    tasks (Sequence[Callable[[], Result]]): they do not depend on each other.
    n_threads (int): at most as many of them at a time.
    RETURNS (List[Result]): what they return, in their order.
    """
    n_threads = min(n_threads, len(tasks))
    if n_threads <= 1:
        with _one_thread():
            return [_run(task) for task in tasks]
    with _one_thread():
        others = _get_pool(n_threads).map(_run, tasks[1:])
        return [_run(tasks[0]), *others]


def _run(task: Callable[[], Result]) -> Result:
    with torch.no_grad():
        return task()


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _get_pool(n_threads: int) -> ThreadPoolExecutor:
    """The caller works too: the pool has a thread less."""
    global _pool, _pool_size
    with _lock:
        if _pool is None or _pool_size < n_threads - 1:
            _pool_size = n_threads - 1
            _pool = ThreadPoolExecutor(_pool_size, "elmo", torch.set_num_threads, (1,))
        return _pool


def _forget_pool() -> None:
    # Threads do not survive a fork.
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
