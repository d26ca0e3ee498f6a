"""`Processes`: several trainers that share a run, started by `torchrun`."""

import os
from contextlib import contextmanager
from typing import Iterator, List, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor


class Processes(NamedTuple):
    """Who this process is.

    rank (int): its number; 0 writes files and prints.
    n_ranks (int): how many there are.
    device (torch.device): where it computes.
    """

    rank: int
    n_ranks: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """RETURNS (bool): Whether this process writes files and prints."""
        return self.rank == 0

    def sum(self, values: List[float]) -> List[float]:
        """values (List[float]): numbers of this process.
        RETURNS (List[float]): their sums over all processes."""
        if self.n_ranks == 1:
            return values
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(tensor)
        return tensor.tolist()

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self.n_ranks > 1:
            dist.barrier()

    def gather(self, tensor: Tensor) -> List[Tensor]:
        """tensor (Tensor): of this process, of one shape everywhere.
        RETURNS (List[Tensor]): those of all processes, by rank."""
        if self.n_ranks == 1:
            return [tensor]
        tensors = [torch.empty_like(tensor) for _ in range(self.n_ranks)]
        dist.all_gather(tensors, tensor.contiguous())
        return tensors


@contextmanager
def join_processes(device: str) -> Iterator[Processes]:
    """Join the processes that `torchrun` started, if it did.

    device (str): "cpu" or "cuda".
    YIELDS (Processes): who this one is; left again at the end.
    """
    n_ranks = int(os.environ.get("WORLD_SIZE", 1))
    rank = int(os.environ.get("RANK", 0))
    where = torch.device(device)
    if device == "cuda":
        where = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(where)
    if n_ranks > 1:
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
    try:
        yield Processes(rank, n_ranks, where)
    finally:
        if n_ranks > 1:
            dist.destroy_process_group()
