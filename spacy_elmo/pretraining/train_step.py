"""`Engine`: one step of one process, and what its LSTM remembers between steps."""

import math
from contextlib import nullcontext
from typing import Any, ContextManager, Dict, List, Optional, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from ..bilm.lstm import BiLMState
from ..language_model.objective import LanguageModel
from ..language_model.readings import LMBatch
from .ranks import Processes
from .settings import TrainingSettings
from .stream import Step


class Engine:
    """Compute and apply the gradient of a step, together with the other processes.

    model (LanguageModel): what to train, in place.
    optimizer (torch.optim.Optimizer): for its weights.
    settings (TrainingSettings): how.
    processes (Processes): who shares the work.
    idle (LMBatch): any batch, for a process that has none of its own.
    """

    def __init__(
        self,
        model: LanguageModel,
        optimizer: torch.optim.Optimizer,
        settings: TrainingSettings,
        processes: Processes,
        idle: LMBatch,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.settings = settings
        self.processes = processes
        self.idle = idle
        self.device = processes.device.type
        self.module: Any = model
        if processes.n_ranks > 1:
            self.module = DistributedDataParallel(model)
        # Small float16 gradients would be lost; the scale is found by trying.
        self.scaler = torch.amp.GradScaler(self.device, enabled=settings.precision == "fp16")

    def step(
        self, step: Step, number: int, rate: float, state: Optional[List[BiLMState]]
    ) -> Tuple[List[float], float, Optional[List[BiLMState]]]:
        """Do a step.

        step (Step): this process's share.
        number (int): steps done before.
        rate (float): learning rate.
        state (Optional[List[BiLMState]]): after each piece of the last step.
        RETURNS (Tuple[List[float], float, Optional[List[BiLMState]]]): the summed losses of
            this process, the language model's and each teacher's; the gradient's norm over
            all; and the state after each piece if the next step may go on from it. Nothing
            changes if the norm is not finite.
        """
        settings, processes = self.settings, self.processes
        # Dropout and samples depend on the step alone: no generator's state to keep.
        seed = np.random.SeedSequence([settings.seed, number, processes.rank])
        torch.manual_seed(int(seed.generate_state(1)[0]))
        self.module.train()
        before = state if step.continues else None
        after: List[BiLMState] = []
        totals = np.zeros(1 + len(self.model.teachers))
        # A process without a sequence of its own still has to exchange gradients.
        batches = step.batches or [self.idle]
        # Processes average their gradients: their number times the share of each makes
        # the mean over all predictions.
        share = processes.n_ranks / (2 * step.n_targets)
        for i, batch in enumerate(batches):
            is_last = i == len(batches) - 1
            with self._synchronised(is_last):
                with settings.autocast(self.device):
                    losses, last = self.module(batch, before[i] if before else None)
                    loss = losses.sum() if step.batches else self._nothing()
                self.scaler.scale(loss * share).backward()
            after.append(last)
            if step.batches:
                totals += losses.detach().cpu().double().numpy()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.scaler.unscale_(self.optimizer)
        limit = settings.clip or math.inf
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), limit))
        if math.isfinite(norm):
            self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        # A state of a step that was left out may be as bad as its gradient.
        is_kept = settings.state_steps and math.isfinite(norm)
        return totals.tolist(), norm, after if is_kept else None

    def _nothing(self) -> Tensor:
        """A loss whose gradient is 0 for each weight; 0 times that of a batch would not be
        if the batch has a value that is not finite."""
        return torch.stack([0.0 * weight.sum() for weight in self.model.parameters()]).sum()

    def _synchronised(self, is_last: bool) -> ContextManager[Any]:
        if self.processes.n_ranks == 1 or is_last:
            return nullcontext()
        return self.module.no_sync()


def gather_state(states: Optional[List[BiLMState]], processes: Processes) -> Dict[str, Tensor]:
    """states (Optional[List[BiLMState]]): after each piece of this process. processes
    (Processes): all of them. RETURNS (Dict[str, Tensor]): what the LSTM remembers of all
    rows, in the order of the rows, by names for a checkpoint."""
    if states is None:
        return {}
    names = BiLMState._fields
    parts = [processes.gather([state[i].cpu() for state in states]) for i in range(len(names))]
    return {f"state.{name}": _join_rows(shares) for name, shares in zip(names, parts)}


def _join_rows(shares: List[Tensor]) -> Tensor:
    """Row r of all is in share r % n_shares."""
    n_rows = sum(share.size(2) for share in shares)
    joined = shares[0].new_empty(*shares[0].shape[:2], n_rows, shares[0].size(3))
    for k, share in enumerate(shares):
        joined[:, :, k :: len(shares)] = share
    return joined


def share_state(
    tensors: Dict[str, Tensor], settings: TrainingSettings, processes: Processes
) -> Optional[List[BiLMState]]:
    """tensors (Dict[str, Tensor]): of a checkpoint. settings (TrainingSettings): with the
    number of pieces. processes (Processes): which one this is. RETURNS
    (Optional[List[BiLMState]]): its part in what `gather_state` gathered, if any."""
    names = [f"state.{name}" for name in BiLMState._fields]
    if names[0] not in tensors:
        return None
    n_shares = processes.n_ranks * settings.accumulate
    mine = range(processes.rank * settings.accumulate, (processes.rank + 1) * settings.accumulate)
    return [
        BiLMState(*(tensors[name][:, :, k::n_shares].to(processes.device) for name in names))
        for k in mine
    ]
