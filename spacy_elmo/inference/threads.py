"""Threads and forks."""

import logging
import os
import signal
import threading
from contextlib import suppress
from functools import partial
from multiprocessing import parent_process
from queue import SimpleQueue
from typing import Any, Callable, Generic, List, Optional, Protocol, Sequence, Tuple, TypeVar
from weakref import WeakSet

import torch

from ..bilm.build_lock import BUILD_LOCK

Result = TypeVar("Result")
# What a worker waits for; None ends it.
_Jobs = SimpleQueue[Optional[Callable[[], None]]]

# Seconds that are waited for a thread whose start was interrupted.
_START_SECONDS = 1.0

_lock = threading.Lock()
# All that there are. A call takes as many as it asked for, always the first ones: what
# they have in their caches is of use to the next call.
_workers: List[_Jobs] = []
_current = threading.local()


class Stopped(Exception):
    """Raised in a task whose caller does not wait for it any more."""


def choose_n_threads(n_threads: int) -> int:
    """n_threads (int): what the config says; 0 to choose. RETURNS (int): as many; chosen,
    as many as torch would use, and one in a child process, which has siblings."""
    if n_threads:
        return n_threads
    return 1 if parent_process() is not None else torch.get_num_threads()


def run_parallel(tasks: Sequence[Callable[[], Result]], n_threads: int) -> List[Result]:
    """Run tasks that need no gradients, in threads in which torch takes one thread.

    tasks (Sequence[Callable[[], Result]]): they do not depend on each other.
    n_threads (int): at most as many of them at a time.
    RETURNS (List[Result]): what they return, in their order. No task runs any more then,
        nor when an error of theirs or an interrupt is raised.
    """
    n_threads = max(1, min(n_threads, len(tasks)))
    if n_threads == 1 and torch.get_num_threads() == 1:
        return [task() for task in tasks]
    workers = _get_workers(n_threads)
    if not workers:
        return _run_alone(tasks)
    shared = _SharedTasks(tasks, len(workers))
    try:
        for worker, left in zip(workers, shared.left):
            worker.put(partial(shared.run, left))
        return shared.collect()
    finally:
        shared.stop()


def raise_if_stopped() -> None:
    """For tasks that take long. RAISES (Stopped): in a task of `run_parallel` whose caller
    was interrupted."""
    tasks = getattr(_current, "tasks", None)
    if tasks is not None and tasks.is_stopped:
        raise Stopped


class _SharedTasks(Generic[Result]):
    """Tasks of one call, taken one at a time by whoever is free.

    left (List[threading.Lock]): one for each worker, held while it is at work.
    """

    def __init__(self, tasks: Sequence[Callable[[], Result]], n_workers: int) -> None:
        self.is_stopped = False
        self.left = [threading.Lock() for _ in range(n_workers)]
        self._n_tasks = len(tasks)
        self._waiting = iter(list(enumerate(tasks)))
        self._take = threading.Lock()
        # Number of the task, what it returned, what it raised.
        self._finished: SimpleQueue[Tuple[int, Any, Optional[BaseException]]] = SimpleQueue()

    def run(self, left: threading.Lock) -> None:
        """What each worker does."""
        with left:
            _current.tasks = self
            while not self.is_stopped:
                with self._take:
                    i, task = next(self._waiting, (-1, None))
                if task is None:
                    break
                try:
                    self._finished.put((i, task(), None))
                except BaseException as err:
                    self._finished.put((i, None, err))
            _current.tasks = None

    def collect(self) -> List[Result]:
        """Wait for all, also if one fails."""
        finished = sorted((self._finished.get() for _ in range(self._n_tasks)), key=_get_number)
        for _, _, error in finished:
            if error is not None:
                raise error
        return [result for _, result, _ in finished]

    def stop(self) -> None:
        """Wait until no worker is at work: at once, unless the caller was interrupted."""
        self.is_stopped = True
        for left in self.left:
            with left:
                pass


def _get_number(finished: Tuple[int, Any, Any]) -> int:
    return finished[0]


def _run_alone(tasks: Sequence[Callable[[], Result]]) -> List[Result]:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        return [task() for task in tasks]
    finally:
        torch.set_num_threads(before)


def _get_workers(n_threads: int) -> List[_Jobs]:
    """RETURNS (List[_Jobs]): of as many workers, or of fewer if the system gives no more."""
    with _lock:
        if len(_workers) < n_threads:
            # What a thread sets for itself becomes the default of threads that come later.
            before = torch.get_num_threads()
            try:
                # Too many threads for the system, or the interpreter is about to end.
                with suppress(RuntimeError):
                    while len(_workers) < n_threads:
                        _workers.append(_start_worker(f"elmo-{len(_workers)}"))
            finally:
                torch.set_num_threads(before)
        return _workers[:n_threads]


def _start_worker(name: str) -> _Jobs:
    jobs: _Jobs = SimpleQueue()
    starting = threading.Lock()
    starting.acquire()
    thread = threading.Thread(target=_work, args=(jobs, starting), name=name, daemon=True)
    try:
        thread.start()
        starting.acquire()
    except RuntimeError:
        raise
    except BaseException:
        # An interrupt: the thread may be about to begin, and ends again.
        jobs.put(None)
        starting.acquire(timeout=_START_SECONDS)
        raise
    return jobs


def _work(jobs: _Jobs, starting: threading.Lock) -> None:
    # A thread's first look takes the default: it must not come after the setting.
    torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    starting.release()
    while True:
        job = jobs.get()
        if job is None:
            return
        job()
        # Waiting, it keeps nothing of the last call alive.
        del job


def _forget_workers() -> None:
    # Threads do not survive a fork.
    global _lock
    _lock = threading.Lock()
    _workers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)


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
