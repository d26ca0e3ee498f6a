"""`TorchShim`: Thinc's bridge to torch, with the averages of its weights."""

from contextlib import contextmanager
from typing import Dict, Iterator

from thinc.api import PyTorchShim, xp2torch


class TorchShim(PyTorchShim):
    """Thinc's shim, which takes averaged weights. See `PyTorchShim.use_params`: it looks for keys
    that no optimizer writes."""

    @contextmanager
    def use_params(self, params: Dict) -> Iterator[None]:
        """params (Dict): (id, name) -> array, such as `optimizer.averages`."""
        own = dict(self._model.named_parameters())
        names = [name for name in own if (self.id, name) in params]
        backup = {name: own[name].data for name in names}
        for name in names:
            own[name].data = xp2torch(params[self.id, name], device=own[name].device)
        try:
            yield
        finally:
            for name, data in backup.items():
                own[name].data = data
