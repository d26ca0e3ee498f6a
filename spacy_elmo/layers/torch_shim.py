"""Thinc's bridge to torch, and the devices that it uses."""

import copy
from contextlib import contextmanager
from typing import Any, Dict, Iterator

import torch
from thinc.api import CupyOps, PyTorchShim, get_current_ops, xp2torch
from thinc.util import get_torch_default_device, has_cupy_gpu

from ..bilm.weights import usual_numbers
from ..errors import Errors

# What spaCy calls the processor.
NO_GPU = -1


def check_gpu(gpu_id: int) -> None:
    """EL325 if spaCy, which needs CuPy, cannot use a GPU. Nothing is loaded onto it."""
    n_gpus = torch.cuda.device_count() if has_cupy_gpu else 0
    if gpu_id != NO_GPU and not 0 <= gpu_id < n_gpus:
        raise ValueError(Errors.EL325.format(gpu_id=gpu_id, n_gpus=n_gpus))


def get_gpu_name() -> str:
    """Name of the GPU that this process uses; "" without one."""
    return torch.cuda.get_device_name() if isinstance(get_current_ops(), CupyOps) else ""


class TorchShim(PyTorchShim):
    """Thinc's shim with averaged weights: `PyTorchShim.use_params` looks for keys that no optimizer
    writes. The module is moved to `choose_device`."""

    def __init__(self, model: torch.nn.Module, **kwargs: Any) -> None:
        with usual_numbers():
            super().__init__(model, device=choose_device(), **kwargs)

    @property
    def device(self) -> torch.device:
        """Where the module's weights are, or will be."""
        weights = next(self._model.parameters(), None)
        return choose_device() if weights is None else weights.device

    def copy(self) -> "TorchShim":
        """Copy with another id, by which the optimizer keeps moments and averages."""
        copied = copy.deepcopy(self)
        with PyTorchShim.global_id_lock:
            PyTorchShim.global_id += 1
            copied.id = PyTorchShim.global_id
        return copied

    @contextmanager
    def use_params(self, params: Dict) -> Iterator[None]:
        """Use arrays by (id, name), such as `optimizer.averages`."""
        own = dict(self._model.named_parameters())
        names = [name for name in own if (self.id, name) in params]
        backup = {name: own[name].data for name in names}
        for name in names:
            own[name].data = xp2torch(params[self.id, name], device=own[name].device)
        if names:
            self.note_changed_weights()
        try:
            yield
        finally:
            for name, data in backup.items():
                own[name].data = data
            if names:
                self.note_changed_weights()

    def note_changed_weights(self) -> None:
        """Called after weights were replaced; for modules that cache what they compute."""


def choose_device() -> torch.device:
    """Where new modules belong: on Thinc's device, but not on Apple's GPUs, for which torch lacks
    operations that we need."""
    device = get_torch_default_device()
    return torch.device("cpu") if device.type == "mps" else device
