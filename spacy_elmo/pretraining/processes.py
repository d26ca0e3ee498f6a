"""`Processes`: several trainers that share a run, started by `torchrun`."""

import os
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Iterator, List, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

# The first process may count words for hours while the others wait.
_TIMEOUT = timedelta(days=7)
# Until all of them have started.
_START_TIMEOUT = timedelta(minutes=10)


class Processes(NamedTuple):
    """This process among those of a run; number 0 writes files and prints."""

    rank: int
    n_ranks: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def sum(self, values: List[float]) -> List[float]:
        """Sum values over all processes."""
        if self.n_ranks == 1:
            return values
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(tensor)
        return tensor.tolist()

    def wait(self) -> None:
        """Wait until all processes have called it."""
        if self.n_ranks > 1:
            dist.barrier()

    def gather(self, tensors: List[Tensor]) -> List[Tensor]:
        """Collect the CPU tensors of all processes, by rank."""
        if self.n_ranks == 1:
            return tensors
        parts: List[Any] = [None] * self.n_ranks
        dist.all_gather_object(parts, tensors)
        return [tensor for part in parts for tensor in part]


@contextmanager
def join_processes(device: str) -> Iterator[Processes]:
    """Join the processes that `torchrun` started, if it did."""
    n_ranks = int(os.environ.get("WORLD_SIZE", 1))
    rank = int(os.environ.get("RANK", 0))
    torch_device = torch.device(device)
    if device == "cuda":
        torch_device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(torch_device)
    if n_ranks > 1:
        dist.init_process_group(
            "nccl" if device == "cuda" else "gloo",
            timeout=_TIMEOUT,
            store=_meet(rank, n_ranks),
            rank=rank,
            world_size=n_ranks,
        )
    try:
        yield Processes(rank, n_ranks, torch_device)
    finally:
        if n_ranks > 1:
            dist.destroy_process_group()


def _meet(rank: int, n_ranks: int) -> dist.Store:
    """Wait for all processes at torchrun's store, with another prefix for each restart: the store
    still has the addresses of processes that ended."""
    store, _, _ = next(dist.rendezvous("env://", rank, n_ranks, timeout=_TIMEOUT))
    n_restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    store = dist.PrefixStore(f"start_{n_restarts}", store)
    store.set(f"process_{rank}", "started")
    store.wait([f"process_{i}" for i in range(n_ranks)], _START_TIMEOUT)
    return store


@contextmanager
def deterministic(is_wanted: bool) -> Iterator[None]:
    """If wanted, let torch use only operations that always give the same bits on a GPU."""
    before = torch.are_deterministic_algorithms_enabled()
    if is_wanted:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
