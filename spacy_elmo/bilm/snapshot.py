"""`Snapshot`: the weights of a module as they are at a moment; `replace_weights`, which
leaves snapshots whole."""

from collections import deque
from copy import deepcopy
from itertools import repeat
from typing import List, TypeVar

from torch import Tensor, nn

from .build_lock import BUILD_LOCK

Module = TypeVar("Module", bound=nn.Module)


class Snapshot:
    """Refer to a module's weights, without gradients and without a copy: what
    `replace_weights` gives the module later is not seen, what is changed in place is.

    module (nn.Module): any.
    """

    def __init__(self, module: nn.Module) -> None:
        self._tensors = _list_tensors(module)
        # Memory that is referred to is not used again: an equal address is the same memory.
        with BUILD_LOCK:
            self._then = [tensor.detach() for tensor in self._tensors]
        self._addresses = [tensor.data_ptr() for tensor in self._then]

    def is_current(self) -> bool:
        """RETURNS (bool): whether the module's weights still lie where they did."""
        return [tensor.data_ptr() for tensor in self._tensors] == self._addresses

    def freeze(self, module: Module) -> Module:
        """module (Module): the one that it is of. RETURNS (Module): another one with the
        weights of then, which has no gradients."""
        memo = {id(tensor): then for tensor, then in zip(self._tensors, self._then)}
        return deepcopy(module, memo)


def replace_weights(module: Module, others: Module) -> None:
    """Give a module the weights of another one, all at once: to other threads, and for an
    interrupt (Ctrl-C), which comes between two steps of Python but not into one of C.

    module (Module): keeps its parameters as objects, which optimizers know.
    others (Module): of the same shape; not to be used any more.
    """
    news = [tensor.detach() for tensor in _list_tensors(others)]
    with BUILD_LOCK:
        deque(map(setattr, _list_tensors(module), repeat("data"), news), maxlen=0)


def _list_tensors(module: nn.Module) -> List[Tensor]:
    return [*module.parameters(), *module.buffers()]
