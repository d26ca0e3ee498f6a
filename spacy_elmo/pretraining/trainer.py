"""`Trainer`: one training step of one process."""

import math
from contextlib import nullcontext
from typing import Any, ContextManager, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from ..bilm.lstm import BiLMState
from ..language_model.objective import LanguageModel
from ..language_model.readings import LMBatch
from ..language_model.teacher import PREFIX, get_teacher_tensors, set_teacher_tensors
from .carried_state import STATE_PREFIX, gather_state, share_state
from .optimizers import get_tensors, set_tensors
from .ranks import Processes
from .settings import TrainingSettings
from .stream import Step

# Of the state of each piece of a process: after a step, before the next one.
States = Optional[List[BiLMState]]


class StepResult(NamedTuple):
    """What a step computed.

    losses (List[float]): of this process, summed: the language model's, then each teacher's.
    gradient_norm (float): over all processes, before clipping. Weights and state stay as they
        were if it is not finite.
    states (States): after each piece if the next step may continue from it, else None.
    """

    losses: List[float]
    gradient_norm: float
    states: States


class Trainer:
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

    def step(self, step: Step, number: int, rate: float, states: States) -> StepResult:
        """Do a step.

        step (Step): this process's share.
        number (int): steps done before.
        rate (float): learning rate.
        states (States): after each piece of the last step.
        RETURNS (StepResult): losses, gradient norm and states.
        """
        # Dropout and samples depend on the step alone: no generator's state to keep.
        seed = np.random.SeedSequence([self.settings.seed, number, self.processes.rank])
        torch.manual_seed(int(seed.generate_state(1)[0]))
        self.module.train()
        losses, after = self._backward(step, states if step.continues else None)
        norm = self._update(rate)
        # The state of a step that was left out may be as bad as its gradient.
        is_kept = self.settings.state_steps and math.isfinite(norm)
        return StepResult(losses, norm, after if is_kept else None)

    def get_tensors(self, states: States) -> Dict[str, Tensor]:
        """states (States): after the last step. RETURNS (Dict[str, Tensor]): all that the
        next step depends on besides the weights of the model, by names for a checkpoint."""
        return {
            **get_tensors(self.optimizer),
            **gather_state(states, self.processes),
            **get_teacher_tensors(self.model.teachers),
        }

    def set_tensors(self, tensors: Dict[str, Tensor]) -> States:
        """tensors (Dict[str, Tensor]): from `get_tensors`. RETURNS (States): those of this
        process. Restores optimizer and teachers. RAISES (ValueError, KeyError, RuntimeError): if
        they are not of this run."""
        others = (STATE_PREFIX, PREFIX)
        own = {name: t for name, t in tensors.items() if not name.startswith(others)}
        set_tensors(self.optimizer, own)
        set_teacher_tensors(self.model.teachers, tensors)
        shape = self.model.bilm.config
        return share_state(tensors, shape, self.settings.accumulate, self.processes)

    def _backward(self, step: Step, before: States) -> Tuple[List[float], List[BiLMState]]:
        """Add up the gradients of all pieces. RETURNS the losses, and the state after each."""
        after: List[BiLMState] = []
        totals = np.zeros(1 + len(self.model.teachers))
        # A process without a sequence of its own still has to exchange gradients.
        batches = step.batches or [self.idle]
        # Processes average their gradients: their number times the share of each makes
        # the mean over all predictions.
        share = self.processes.n_ranks / (2 * step.n_targets)
        for i, batch in enumerate(batches):
            with self._synchronised(i == len(batches) - 1):
                with self.settings.autocast(self.device):
                    losses, last = self.module(batch, before[i] if before else None)
                    loss = losses.sum() if step.batches else self._zero_loss()
                self.scaler.scale(loss * share).backward()
            after.append(last)
            if step.batches:
                totals += losses.detach().cpu().double().numpy()
        return totals.tolist(), after

    def _update(self, rate: float) -> float:
        """Apply the gradients if they are finite. RETURNS their norm before clipping."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.scaler.unscale_(self.optimizer)
        limit = self.settings.clip or math.inf
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), limit))
        if math.isfinite(norm):
            self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        return norm

    def _zero_loss(self) -> Tensor:
        """A loss whose gradient is 0 for each weight; 0 times that of a batch would not be
        if the batch has a value that is not finite."""
        return torch.stack([0.0 * weight.sum() for weight in self.model.parameters()]).sum()

    def _synchronised(self, is_last: bool) -> ContextManager[Any]:
        """Processes exchange gradients once a step, with those of the last piece."""
        if self.processes.n_ranks == 1 or is_last:
            return nullcontext()
        return self.module.no_sync()
