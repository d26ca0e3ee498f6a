"""`Trainer`: one training step of one process."""

import math
from contextlib import nullcontext
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from ..bilm.lstm import BiLMState
from ..language_model.objective import LanguageModel
from ..language_model.readings import make_lm_batch
from ..language_model.vocabulary import UNK_WORD, Vocabulary
from .config import TrainingSettings
from .processes import Processes
from .stream import Step
from .teachers import PREFIX

# Before the names of the carried state in a checkpoint.
_STATE_PREFIX = "state."
# State after each piece of a process's step, from which the next step continues.
States = Optional[List[BiLMState]]


class StepResult(NamedTuple):
    """Losses of this process, summed: the language model's, then each teacher's; norm of the
    gradient over all processes, before clipping (if it is not finite, the step changed nothing);
    states after each piece, None if the next step may not continue from them."""

    losses: List[float]
    gradient_norm: float
    states: States


class Trainer:
    """Compute and apply the gradient of a step, together with the other processes."""

    def __init__(
        self,
        model: LanguageModel,
        vocabulary: Vocabulary,
        settings: TrainingSettings,
        processes: Processes,
    ) -> None:
        self.model = model
        self.optimizer = settings.make_optimizer(model)
        self.settings = settings
        self.processes = processes
        # Any batch, for a process without sequences in a step.
        self.idle = make_lm_batch([[UNK_WORD]], vocabulary)
        self.device = processes.device.type
        self.module: Any = model
        if processes.n_ranks > 1:
            self.module = DistributedDataParallel(model)
        # Small float16 gradients would be lost; the scale is found by trying.
        self.scaler = torch.amp.GradScaler(self.device, enabled=settings.precision == "fp16")

    def step(self, step: Step, number: int, rate: float, states: States) -> StepResult:
        """Do step `number` with a learning rate, from the states after the last step."""
        # Dropout and samples depend on the step alone, so no generator's state is stored.
        seed = np.random.SeedSequence([self.settings.seed, number, self.processes.rank])
        torch.manual_seed(int(seed.generate_state(1)[0]))
        self.module.train()
        losses, after = self._backward(step, states if step.continues else None)
        norm = self._update(rate)
        # Without a finite gradient the state may not be finite, either.
        is_kept = self.settings.state_steps and math.isfinite(norm)
        return StepResult(losses, norm, after if is_kept else None)

    def get_tensors(self, states: States) -> Dict[str, Tensor]:
        """State of optimizer, LSTMs and teachers after the last step, by names for a checkpoint;
        of the optimizer, "number of the weight.name"."""
        tensors = self._gather_states(states)
        for i, values in self.optimizer.state_dict()["state"].items():
            for name, value in values.items():
                if isinstance(value, Tensor):
                    tensors[f"{i}.{name}"] = value.detach().cpu()
        for name, value in self.model.teachers.state_dict().items():
            tensors[f"{PREFIX}{name}"] = value.detach().cpu()
        return tensors

    def set_tensors(self, tensors: Dict[str, Tensor]) -> States:
        """Restore optimizer and teachers from `get_tensors`; return the states of this process."""
        of_teachers: Dict[str, Tensor] = {}
        of_weights: Dict[int, Dict[str, Tensor]] = {}
        for key, value in tensors.items():
            number, _, name = key.partition(".")
            if key.startswith(PREFIX):
                of_teachers[key.removeprefix(PREFIX)] = value
            elif not key.startswith(_STATE_PREFIX):
                of_weights.setdefault(int(number), {})[name] = value
        self.model.teachers.load_state_dict(of_teachers)
        groups = self.optimizer.state_dict()["param_groups"]
        # torch's own method moves each tensor to the device of its weight.
        self.optimizer.load_state_dict({"state": of_weights, "param_groups": groups})
        return self._share_states(tensors)

    def _gather_states(self, states: States) -> Dict[str, Tensor]:
        """Collect the states of all rows from all processes; row r is in share r % n_shares."""
        if states is None:
            return {}
        tensors = {}
        for i, name in enumerate(BiLMState._fields):
            shares = self.processes.gather([state[i].cpu() for state in states])
            n_rows = sum(share.size(2) for share in shares)
            joined = shares[0].new_empty(*shares[0].shape[:2], n_rows, shares[0].size(3))
            for k, share in enumerate(shares):
                joined[:, :, k :: len(shares)] = share  # (depth, 2, n_rows of the share, width)
            tensors[f"{_STATE_PREFIX}{name}"] = joined
        return tensors

    def _share_states(self, tensors: Dict[str, Tensor]) -> States:
        """Take the rows of this process's pieces."""
        names = [f"{_STATE_PREFIX}{name}" for name in BiLMState._fields]
        if names[0] not in tensors:
            return None
        n_pieces, device = self.settings.accumulate, self.processes.device
        n_shares, first = self.processes.n_ranks * n_pieces, self.processes.rank * n_pieces
        return [
            BiLMState(*(tensors[name][:, :, k::n_shares].to(device) for name in names))
            for k in range(first, first + n_pieces)
        ]

    def _backward(self, step: Step, before: States) -> Tuple[List[float], List[BiLMState]]:
        """Add up the gradients of all pieces. Return their losses and states."""
        after: List[BiLMState] = []
        totals = np.zeros(1 + len(self.model.teachers))
        # A process without sequences still has to exchange gradients.
        batches = step.batches or [self.idle]
        # Processes average their gradients: their number times the share of each makes
        # the mean over all predictions.
        share = self.processes.n_ranks / (2 * step.n_targets)
        for i, batch in enumerate(batches):
            # Processes exchange gradients once a step, with those of the last piece.
            is_last = self.processes.n_ranks == 1 or i == len(batches) - 1
            with nullcontext() if is_last else self.module.no_sync():
                with self.settings.autocast(self.device):
                    losses, last = self.module(batch, before[i] if before else None)
                    if not step.batches:
                        # 0 times the loss is no 0 if a value of the batch is not finite.
                        losses = torch.stack([0.0 * w.sum() for w in self.model.parameters()])
                    loss = losses.sum()
                self.scaler.scale(loss * share).backward()
            after.append(last)
            if step.batches:
                totals += losses.detach().cpu().double().numpy()
        return totals.tolist(), after

    def _update(self, rate: float) -> float:
        """Apply the gradients if they are finite. Return their norm before clipping."""
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
