"""`Snapshot`: the weights of a module as they are at a moment; `replace_weights`, which
leaves snapshots whole."""

from collections import deque
from copy import deepcopy
from itertools import repeat
from typing import Any, List, TypeVar
from weakref import ref

from torch import Tensor, nn

from .build_lock import BUILD_LOCK

Module = TypeVar("Module", bound=nn.Module)


class Snapshot:
    """Refer to a module's weights, without gradients and without a copy: what
    `replace_weights` gives the module later is not seen, what is changed in place is.

    module (nn.Module): any; one that counts its changes (`n_changes`) may also be given other
        parameters by them.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = ref(module)
        self._tensors = _list_tensors(module)
        # Memory that is referred to is not used again: an equal address is the same memory.
        with BUILD_LOCK:
            self._then = [tensor.detach() for tensor in self._tensors]
            self._state = self._describe(module)

    def is_current(self, module: nn.Module) -> bool:
        """module (nn.Module): any. RETURNS (bool): whether it is the one that this is of, and its
        weights still lie where they did and were not changed there, as far as torch or
        `n_changes` counts."""
        return self._module() is module and self._describe(module) == self._state

    def _describe(self, module: nn.Module) -> List[Any]:
        # Tensors of the inference mode count no changes.
        places = [(t.data_ptr(), 0 if t.is_inference() else t._version) for t in self._tensors]
        return [getattr(module, "n_changes", 0), *places]

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
