"""Run pieces of work side by side, each on one thread.

torch's own threads share each small operation and wait for each other after it: with a
neighbour on the machine, everybody waits for the one that lost its processor. Pieces
that last as long as a batch wait once.
"""

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import parent_process
from typing import Callable, Dict, Iterator, List, Sequence, Tuple, TypeVar

import torch

Result = TypeVar("Result")
# Numbers of tasks, and tasks.
Waiting = Iterator[Tuple[int, Callable[[], Result]]]

_lock = threading.Lock()
# By their numbers of threads, so that a call never gets more than it asked for.
_pools: Dict[int, ThreadPoolExecutor] = {}


def choose_n_threads(n_threads: int) -> int:
    """n_threads (int): what the config says; 0 to choose. RETURNS (int): as many; chosen,
    as many as torch would use, and one in a child process, which has siblings."""
    if n_threads:
        return n_threads
    return 1 if parent_process() is not None else torch.get_num_threads()


def run_parallel(tasks: Sequence[Callable[[], Result]], n_threads: int) -> List[Result]:
    """Run tasks without gradients, in threads in which torch takes one thread.

    tasks (Sequence[Callable[[], Result]]): they do not depend on each other.
    n_threads (int): at most as many of them at a time.
    RETURNS (List[Result]): what they return, in their order.
    """
    n_threads = max(1, min(n_threads, len(tasks)))
    waiting = iter(enumerate(tasks))
    if n_threads == 1 and torch.get_num_threads() == 1:
        return [result for _, result in _work(waiting)]
    take = threading.Lock()
    try:
        workers = _start(n_threads, lambda: _work(_share(waiting, take)))
    except RuntimeError:
        # The interpreter is about to end, and starts no thread any more.
        return [result for _, result in _work(waiting)]
    # All are waited for, also if one fails: none goes on behind the caller's back.
    errors = [worker.exception() for worker in workers]
    for error in errors:
        if error is not None:
            raise error
    results = dict(pair for worker in workers for pair in worker.result())
    return [results[i] for i in range(len(tasks))]


def _work(waiting: Waiting[Result]) -> List[Tuple[int, Result]]:
    with torch.no_grad():
        return [(i, task()) for i, task in waiting]


def _share(waiting: Waiting[Result], take: threading.Lock) -> Waiting[Result]:
    """What is left, one at a time, to whoever asks first."""
    while True:
        with take:
            item = next(waiting, None)
        if item is None:
            return
        yield item


def _start(n_threads: int, work: Callable[[], List]) -> List["Future[List]"]:
    with _lock:
        if n_threads not in _pools:
            _pools[n_threads] = _make_pool(n_threads)
        pool = _pools[n_threads]
    return [pool.submit(work) for _ in range(n_threads)]


def _make_pool(n_threads: int) -> ThreadPoolExecutor:
    # What a thread sets for itself becomes the default of threads that come later: it is
    # set back as soon as all of ours have it.
    before = torch.get_num_threads()
    ready = threading.Barrier(n_threads)
    pool = ThreadPoolExecutor(n_threads, "elmo")

    def begin() -> None:
        # A thread's first look takes the default: it must not come after the setting.
        torch.get_num_threads()
        torch.set_num_threads(1)
        ready.wait()

    for future in [pool.submit(begin) for _ in range(n_threads)]:
        future.result()
    torch.set_num_threads(before)
    return pool


def _forget_pools() -> None:
    # Threads do not survive a fork.
    global _lock
    _lock = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)
