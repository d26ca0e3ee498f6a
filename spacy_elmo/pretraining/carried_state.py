"""The LSTM state that is carried from step to step, gathered from processes and shared out."""

from typing import Dict, List, Optional

from torch import Tensor

from ..bilm.config import BiLMConfig
from ..bilm.lstm import BiLMState
from .ranks import Processes

STATE_PREFIX = "state."


def gather_state(states: Optional[List[BiLMState]], processes: Processes) -> Dict[str, Tensor]:
    """states (Optional[List[BiLMState]]): after each piece of this process. processes
    (Processes): all of them. RETURNS (Dict[str, Tensor]): the state of all rows, in the
    order of the rows, by names for a checkpoint; empty without states."""
    if states is None:
        return {}
    names = BiLMState._fields
    parts = [processes.gather([state[i].cpu() for state in states]) for i in range(len(names))]
    return {f"{STATE_PREFIX}{name}": _join_rows(shares) for name, shares in zip(names, parts)}


def _join_rows(shares: List[Tensor]) -> Tensor:
    """Row r of all is in share r % n_shares."""
    n_rows = sum(share.size(2) for share in shares)
    joined = shares[0].new_empty(*shares[0].shape[:2], n_rows, shares[0].size(3))
    for k, share in enumerate(shares):
        joined[:, :, k :: len(shares)] = share  # (depth, 2, n_rows of the share, width)
    return joined


def share_state(
    tensors: Dict[str, Tensor], shape: BiLMConfig, n_pieces: int, processes: Processes
) -> Optional[List[BiLMState]]:
    """tensors (Dict[str, Tensor]): of a checkpoint. shape (BiLMConfig): of the biLM. n_pieces
    (int): of each process. processes (Processes): which one this is. RETURNS
    (Optional[List[BiLMState]]): the state of the rows of each of its pieces; None if no state was
    carried. RAISES (ValueError): if it is not of this biLM."""
    names = [f"{STATE_PREFIX}{name}" for name in BiLMState._fields]
    if names[0] not in tensors:
        return None
    n_rows = tensors[names[0]].shape[2:3]
    for name, width in zip(names, (shape.width // 2, shape.cell_width)):
        expected = (shape.depth, 2, *n_rows, width)
        if tensors[name].shape != expected:
            found = tuple(tensors[name].shape)
            raise ValueError(f"'{name}' has shape {found}, expected {expected}")
    n_shares, first = processes.n_ranks * n_pieces, processes.rank * n_pieces
    return [
        BiLMState(*(tensors[name][:, :, k::n_shares].to(processes.device) for name in names))
        for k in range(first, first + n_pieces)
    ]
