"""Give tasks to workers, and give those of a lost worker to another one.

A worker is a process somewhere, which computes a task at a time and may be killed at any moment.
"""

import logging
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Deque, Dict, Iterator, List, Optional, Protocol, Sequence, Tuple, Type

from ..errors import Errors, Warnings
from ..utils import show_reason
from .records import Result, Task
from .retries import Retries

logger = logging.getLogger("spacy_elmo")

# Starts of a worker that fail one after the other.
_MOST_STARTS = 3
# Seconds after which it is said that no worker can be had.
_PATIENCE = 60.0


class Worker(Protocol):
    """A place where tasks are computed."""

    @property
    def lost(self) -> Tuple[Type[BaseException], ...]:
        """RETURNS (Tuple[Type[BaseException], ...]): Errors which say that its process is gone."""

    def start(self) -> "Future[Any]":
        """RETURNS (Future[Any]): Done when a new process has loaded the pipeline."""

    def submit(self, task: Task) -> "Future[Result]":
        """task (Task): to compute. RETURNS (Future[Result]): what became of it."""

    def close(self) -> None:
        """End the process at once."""


class Scheduler:
    """Run tasks.

    workers (Sequence[Worker]): not started yet.
    retries (Retries): of the job.
    """

    def __init__(self, workers: Sequence[Worker], retries: Retries) -> None:
        self.workers = workers
        self.retries = retries
        self._starts: Dict[Future[Any], Worker] = {}
        self._tasks: Dict[Future[Result], Tuple[Worker, Task]] = {}
        self._n_failed = 0
        self._lost: Deque[Task] = Deque()

    def run(self, tasks: Iterator[Task]) -> Iterator[Result]:
        """Compute tasks, as many at a time as there are workers.

        tasks (Iterator[Task]): read as workers become free.
        YIELDS (Result): of each of them once, in any order.
        RAISES (ValueError): EL251 if processes are killed whatever they do; else what workers
            raise.
        """
        try:
            idle: List[Worker] = []
            for worker in self.workers:
                self._start(worker)
            task = self._next(tasks)
            while task is not None or self._tasks:
                while idle and task is not None:
                    self._submit(idle.pop(), task)
                    task = self._next(tasks)
                for future in self._wait():
                    if future in self._starts:
                        idle += self._finish_start(future)
                        continue
                    worker, result = self._finish_task(future)
                    if result is not None:
                        idle.append(worker)
                        yield result
                task = self._next(tasks) if task is None else task
        finally:
            for worker in self.workers:
                worker.close()

    def _next(self, tasks: Iterator[Task]) -> Optional[Task]:
        return self._lost.popleft() if self._lost else next(tasks, None)

    def _start(self, worker: Worker) -> None:
        self._starts[worker.start()] = worker

    def _wait(self) -> "List[Future[Any]]":
        """RETURNS (List[Future[Any]]): What is done; at least one."""
        while True:
            done, _ = wait([*self._starts, *self._tasks], _PATIENCE, FIRST_COMPLETED)
            if done:
                return list(done)
            if not self._tasks:
                logger.warning(Warnings.WL052.format(seconds=int(_PATIENCE)))

    def _finish_start(self, future: "Future[Any]") -> List[Worker]:
        """RETURNS (List[Worker]): The worker, if it has started."""
        worker = self._starts.pop(future)
        try:
            future.result()
        except worker.lost as err:
            self._n_failed += 1
            if self._n_failed >= _MOST_STARTS:
                error = show_reason(err)
                raise ValueError(Errors.EL253.format(number=self._n_failed, error=error)) from err
            self._start(worker)
            return []
        self._n_failed = 0
        return [worker]

    def _submit(self, worker: Worker, task: Task) -> None:
        try:
            self._tasks[worker.submit(task)] = worker, task
        except worker.lost:
            self._lose(worker, task)

    def _finish_task(self, future: "Future[Result]") -> Tuple[Worker, Optional[Result]]:
        """RETURNS (Tuple[Worker, Optional[Result]]): A worker, and what it has computed; None if it
        was killed."""
        worker, task = self._tasks.pop(future)
        try:
            return worker, future.result()
        except worker.lost:
            self._lose(worker, task)
            return worker, None

    def _lose(self, worker: Worker, task: Task) -> None:
        logger.warning(Warnings.WL051.format(task=task.number))
        self._lost.append(self.retries.after_death(task))
        self._start(worker)
