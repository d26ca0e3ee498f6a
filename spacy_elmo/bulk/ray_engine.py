"""Compute tasks on a Ray cluster (extra "ray"): a pool of actors, with a pipeline each.

Actors, not Ray Data: that cuts its blocks by what the cluster has at the moment, and repeats what
was lost with other boundaries and names, so that a resumed job could neither tell which rows are
there nor find the record that kills its process. Here a shard is a function of the input alone.
"""

import os
import platform
import socket
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Generator, Iterator, Optional, Union

from ..errors import Errors
from ..utils import show_reason
from .bulk_settings import BulkSettings
from .job_files import JOB
from .records import Result, Task
from .retries import Retries
from .scheduler import Scheduler
from .task_worker import TaskWorker

try:
    import ray
    from ray.exceptions import OutOfMemoryError, RayActorError, RayError, WorkerCrashedError
except ImportError:
    ray = None  # type: ignore[assignment]

# To wait for an answer of a cluster.
_SECONDS = 10.0


def require_ray() -> None:
    """RAISES (ValueError): EL241 if there is no Ray."""
    if ray is None:
        raise ValueError(Errors.EL241)


def run_ray(
    tasks: Iterator[Task],
    worker: TaskWorker,
    retries: Retries,
    *,
    n_workers: int,
    address: Optional[str] = None,
    n_cpus: float = 1.0,
    n_gpus: float = 0.0,
) -> Generator[Result, None, None]:
    """Compute tasks on a Ray cluster.

    tasks (Iterator[Task]): of a job.
    worker (TaskWorker): of the job; its output folder must be one that all nodes see.
    retries (Retries): of the job.
    n_workers (int): actors.
    address (Optional[str]): of the cluster; None for that of RAY_ADDRESS, or else this machine.
    n_cpus (float), n_gpus (float): of each actor.
    YIELDS (Result): of each task once.
    RAISES (ValueError): EL241 without Ray, EL252 if a node does not see the output folder, EL295
        if it has another pipeline, EL255 if the cluster cannot be reached, or wants another token;
        else as `Scheduler`.
    """
    require_ray()
    is_own = not ray.is_initialized()
    if is_own:
        _connect(address)
    try:
        resources = {"num_cpus": n_cpus, "num_gpus": n_gpus}
        workers = [RayWorker(worker, resources) for _ in range(n_workers)]
        yield from Scheduler(workers, retries).run(tasks)
    finally:
        if is_own:
            ray.shutdown()


def _connect(address: Optional[str]) -> None:
    try:
        _knock(address or "")
        ray.init(address=address, include_dashboard=False, log_to_driver=False)
    # Ray's own: it has no token for the cluster, or another one.
    except (OSError, ValueError, RuntimeError, RayError) as err:
        error = show_reason(err)
        raise ValueError(Errors.EL255.format(address=address or "local", error=error)) from err


def _knock(address: str) -> None:
    """address (str): of a cluster. RAISES (OSError): if nobody is there: Ray would ask again for
    minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), _SECONDS).close()


class RayWorker:
    """An actor, which is made anew if it is lost, wherever there is room.

    worker (TaskWorker): of the job.
    resources (Dict[str, float]): of the actor, in Ray's terms.
    """

    def __init__(self, worker: TaskWorker, resources: Any) -> None:
        self.lost = (RayActorError, OutOfMemoryError, WorkerCrashedError)
        gpu, output = resources["num_gpus"] > 0, worker.output.resolve()
        self._arguments = (worker.settings.resolve(), output, gpu, worker.description)
        self._resources = resources
        self._actor: Any = None

    def start(self) -> "Future[Any]":
        """See `Worker`."""
        self.close()
        # What is to be done after a death is for the scheduler to say.
        actor = ray.remote(max_restarts=0, max_task_retries=0, **self._resources)(_Actor)
        self._actor = actor.remote(*self._arguments)
        return _follow(self._actor.load.remote())

    def submit(self, task: Task) -> "Future[Result]":
        """See `Worker`."""
        return _follow(self._actor.compute.remote(task))

    def close(self) -> None:
        """See `Worker`."""
        if self._actor is not None:
            ray.kill(self._actor)
            self._actor = None


class _Actor:
    """Runs in a process of a node."""

    def __init__(self, settings: BulkSettings, output: Path, gpu: bool, description: Any) -> None:
        self.worker = TaskWorker(settings, output, gpu=gpu, description=description)

    def load(self) -> Union[int, Exception]:
        """RETURNS (Union[int, Exception]): Its process, or what went wrong."""
        try:
            require_output(self.worker.output)
            self.worker.load()
        except (OSError, ValueError, RuntimeError) as err:
            return err
        return os.getpid()

    def compute(self, task: Task) -> Union[Result, Exception]:
        """task (Task): to compute. RETURNS (Union[Result, Exception]): what became of it."""
        try:
            return self.worker(task)
        # Raised by the caller, as it is: Ray would put its own text around it.
        except (OSError, ValueError, RuntimeError) as err:
            return err


def require_output(output: Path) -> None:
    """output (Path): folder of a job. RAISES (ValueError): EL252 if this node does not see it."""
    if not (output / JOB).is_file():
        raise ValueError(Errors.EL252.format(path=output, node=platform.node()))


def _follow(reference: Any) -> "Future[Any]":
    """RETURNS (Future[Any]): Of a reference of Ray; what is an error is raised."""
    outer: Future[Any] = Future()

    def finish(inner: "Future[Any]") -> None:
        error = inner.exception()
        value = inner.result() if error is None else error
        if isinstance(value, BaseException):
            outer.set_exception(value)
        else:
            outer.set_result(value)

    reference.future().add_done_callback(finish)
    return outer
