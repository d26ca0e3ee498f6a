"""Compute tasks in processes of this machine, or in this one."""

from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Generator, Iterator, Optional, Tuple

from ..utils import end_with_parent
from .bulk_settings import BulkSettings
from .records import Result, Task
from .retries import Retries
from .scheduler import Scheduler
from .task_worker import TaskWorker

_worker: Optional[TaskWorker] = None


def run_local(
    tasks: Iterator[Task], worker: TaskWorker, retries: Retries, *, n_processes: int
) -> Generator[Result, None, None]:
    """Compute tasks on this machine.

    tasks (Iterator[Task]): of a job.
    worker (TaskWorker): of the job, for one process: this one.
    retries (Retries): of the job.
    n_processes (int): if more than one, processes of their own, of which each may be killed.
    YIELDS (Result): of each task once.
    RAISES: as `TaskWorker` and `Scheduler`.
    """
    if n_processes == 1:
        yield from map(worker, tasks)
        return
    workers = [
        LocalWorker(worker.settings, worker.output, worker.gpu, worker.description)
        for _ in range(n_processes)
    ]
    yield from Scheduler(workers, retries).run(tasks)


class LocalWorker:
    """A process of this machine. A pool with one process each: so it is known which task was
    computed where one was killed.

    settings (BulkSettings): of the job.
    output (Path): its folder.
    gpu (bool): whether to compute on a GPU.
    description (Any): of the job's pipeline.
    """

    lost = (BrokenProcessPool,)

    def __init__(
        self, settings: BulkSettings, output: Path, gpu: bool = False, description: Any = None
    ) -> None:
        self._arguments = (settings, output, gpu, description)
        self._pool: Optional[ProcessPoolExecutor] = None
        self._ends: Tuple[Connection, ...] = ()

    def start(self) -> "Future[Any]":
        """See `Worker`."""
        self.close()
        # Spawned: torch's threads, and the parent's memory, stay out of it.
        context = get_context("spawn")
        self._ends = context.Pipe(duplex=False)
        arguments = (*self._arguments, self._ends[0])
        self._pool = ProcessPoolExecutor(1, context, _set_up, arguments)
        return self._pool.submit(_load)

    def submit(self, task: Task) -> "Future[Result]":
        """See `Worker`."""
        assert self._pool is not None
        return self._pool.submit(_compute, task)

    def close(self) -> None:
        """See `Worker`. Shards are written whole or not at all."""
        for end in reversed(self._ends):
            end.close()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._pool, self._ends = None, ()


def _set_up(
    settings: BulkSettings, output: Path, gpu: bool, description: Any, stopped: Connection
) -> None:
    global _worker
    end_with_parent(stopped)
    _worker = TaskWorker(settings, output, gpu=gpu, description=description)


def _load() -> None:
    assert _worker is not None
    _worker.load()


def _compute(task: Task) -> Result:
    assert _worker is not None
    return _worker(task)
