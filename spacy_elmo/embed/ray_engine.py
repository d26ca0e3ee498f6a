"""Compute tasks on a Ray cluster (extra "ray"): a pool of actors, with a pipeline each.

Blocks of Ray Data depend on the state of the cluster, so it is not used. Shards are the same as
those of one machine, so a job can be resumed anywhere.
"""

import platform
import socket
from pathlib import Path
from typing import Any, Dict, Generator, Iterator, Optional, Union

from ..errors import Errors
from ..utils import show_reason
from .job import JOB, KILLED, Result, ShardWorker
from .pipeline import EmbedSettings
from .readers import Task

try:
    import ray
    from ray.exceptions import RayError
    from ray.util import ActorPool
except ImportError:
    ray = None  # type: ignore[assignment]

# To wait for an answer of a cluster.
_SECONDS = 10.0
# An actor that is lost is started again, and its shard computed again.
_RETRIES: Any = {"max_restarts": -1, "max_task_retries": 4}


def require_ray() -> None:
    """Check that Ray is there."""
    if ray is None:
        raise ValueError(Errors.EL038.format(purpose="`--engine ray`", package="ray", extra="ray"))


def run_ray(
    tasks: Iterator[Task],
    worker: ShardWorker,
    *,
    n_workers: int,
    address: Optional[str] = None,
    n_cpus: float = 1.0,
    n_gpus: float = 0.0,
) -> Generator[Result, None, None]:
    """An engine: compute tasks on a Ray cluster, whose nodes all see the output folder. Without an
    address it is that of RAY_ADDRESS, or else this machine."""
    is_own = not ray.is_initialized()
    if is_own:
        _connect(address)
    try:
        remote = ray.remote(num_cpus=n_cpus, num_gpus=n_gpus, **_RETRIES)(_Actor)
        arguments = (worker.settings, worker.output.resolve(), n_gpus > 0, worker.description)
        pool = ActorPool([remote.remote(*arguments) for _ in range(n_workers)])
        n_waiting = 0
        for task in tasks:
            pool.submit(lambda actor, task: actor.compute.remote(task), task)
            n_waiting += 1
            if n_waiting >= 2 * n_workers:
                yield _get_next(pool)
                n_waiting -= 1
        while pool.has_next():
            yield _get_next(pool)
    finally:
        if is_own:
            ray.shutdown()


def _get_next(pool: Any) -> Result:
    try:
        result = pool.get_next_unordered()
    except RayError as err:
        raise ValueError(Errors.EL251.format(remedy=KILLED)) from err
    if isinstance(result, Exception):
        raise result
    return result


def _connect(address: Optional[str]) -> None:
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdecimal():
            # Ray itself would try for minutes.
            socket.create_connection((host, int(port)), _SECONDS).close()
        ray.init(address=address, include_dashboard=False, log_to_driver=False)
    # A RayError without a token of the cluster, or with another one.
    except (OSError, ValueError, RuntimeError, RayError) as err:
        raise ValueError(
            f"The Ray cluster '{address or 'local'}' cannot be reached: {show_reason(err)}. Check "
            "`--address`, and whether `ray status` shows its nodes. If the cluster asks for a "
            "token, set RAY_AUTH_MODE and RAY_AUTH_TOKEN."
        ) from err


class _Actor:
    """Runs in a process of a node."""

    def __init__(
        self, settings: EmbedSettings, output: Path, gpu: bool, description: Dict[str, Any]
    ) -> None:
        self.worker = ShardWorker(settings, output, gpu=gpu, description=description)
        self.is_checked = False

    def check(self) -> None:
        """Check that the node has the output folder and the same pipeline."""
        node, output = platform.node(), self.worker.output
        if not (output / JOB).is_file():
            raise ValueError(
                f"The node '{node}' does not see the folder '{output}'. Give one on a file system "
                "that all nodes of the cluster share."
            )
        if self.worker.load().describe() != self.worker.description:
            raise ValueError(
                f"The node '{node}' has another pipeline '{self.worker.settings.pipeline}' than "
                "the caller. Put the same files and packages there."
            )
        self.is_checked = True

    def compute(self, task: Task) -> Union[Result, Exception]:
        """Write a shard. An error is returned: Ray would wrap one that is raised."""
        try:
            if not self.is_checked:
                self.check()
            return self.worker(task)
        except (OSError, ValueError, RuntimeError) as err:
            return err
