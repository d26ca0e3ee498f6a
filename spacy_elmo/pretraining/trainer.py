"""`Trainer`: one training step of one process."""

import math
from contextlib import nullcontext
from typing import Any, ContextManager, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from ..bilm.config import BiLMConfig
from ..bilm.lstm import BiLMState
from ..language_model.objective import LanguageModel
from ..language_model.readings import LMBatch
from ..pretraining.teachers import PREFIX, get_teacher_tensors, set_teacher_tensors
from .config import TrainingSettings
from .processes import Processes
from .stream import Step

_STATE = {"step", "exp_avg", "exp_avg_sq"}


_AMSGRAD_STATE = _STATE | {"max_exp_avg_sq"}


def get_tensors(optimizer: torch.optim.Optimizer) -> Dict[str, Tensor]:
    """optimizer (torch.optim.Optimizer): after any number of steps. RETURNS (Dict[str,
    Tensor]): its state, as "number of the weight.name"."""
    return {
        f"{i}.{name}": value.detach().cpu()
        for i, weight in enumerate(w for g in optimizer.param_groups for w in g["params"])
        for name, value in optimizer.state[weight].items()
        if isinstance(value, Tensor)
    }


def set_tensors(optimizer: torch.optim.Optimizer, tensors: Dict[str, Tensor]) -> None:
    """Restore the state that `get_tensors` returned.

    optimizer (torch.optim.Optimizer): for the same weights.
    tensors (Dict[str, Tensor]): the state.
    RAISES (ValueError): if it is not of these weights.
    """
    groups = optimizer.state_dict()["param_groups"]
    names = _AMSGRAD_STATE if groups[0]["amsgrad"] else _STATE
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    shapes = {str(i): weight.shape for i, weight in enumerate(weights)}
    state: Dict[int, Dict[str, Tensor]] = {}
    for key, value in tensors.items():
        number, _, name = key.partition(".")
        if number not in shapes or name not in names:
            raise ValueError(f"'{key}' is no part of the optimizer's state")
        shape = torch.Size() if name == "step" else shapes[number]
        if value.shape != shape or not torch.isfinite(value).all():
            raise ValueError(f"'{key}' has no finite numbers of shape {tuple(shape)}")
        state.setdefault(int(number), {})[name] = value.clone()
    for i, found in state.items():
        if found.keys() != names:
            raise ValueError(f"weight {i} lacks {sorted(names - found.keys())}")
    # torch's own method moves each tensor to the device of its weight.
    optimizer.load_state_dict({"state": state, "param_groups": groups})


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
