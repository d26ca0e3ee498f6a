"""Thinc's layers on a processor with torch's products: `TorchOps` in training, and for prediction
whole blocks of layers, `RowsFinder`, on views of Thinc's parameters.

Thinc's own products take one thread, and on many processors several times as long.
"""

from functools import reduce
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
from thinc.api import Model, NumpyOps
from thinc.layers.chain import forward as chain_forward
from thinc.layers.dropout import forward as dropout_forward
from thinc.layers.expand_window import forward as expand_window_forward
from thinc.layers.layernorm import forward as layernorm_forward
from thinc.layers.linear import forward as linear_forward
from thinc.layers.maxout import forward as maxout_forward
from thinc.layers.residual import forward as residual_forward
from torch import Tensor
from torch.nn import functional as F

# (n_rows, n_in) -> (n_rows, n_out)
Rows = Callable[[Tensor], Tensor]

# Thinc's.
_NORM_EPSILON = 1e-8


class TorchOps(NumpyOps):
    """Thinc's operations on a processor, with torch's matrix products."""

    def gemm(
        self, x: Any, y: Any, out: Any = None, trans1: bool = False, trans2: bool = False
    ) -> Any:
        """As Thinc's. Written into an array of NumPy's, so that it is exact under
        `torch.autocast`."""
        X, Y = as_tensor(x.T if trans1 else x), as_tensor(y.T if trans2 else y)
        if out is None:
            out = np.empty((X.size(0), Y.size(1)), dtype=x.dtype)
        torch.mm(X, Y, out=torch.from_numpy(out))
        return out


def use_torch(model: Model) -> None:
    """Have the layers of a model multiply by torch, unless they are on a GPU."""
    for node in model.walk():
        if type(node.ops) is NumpyOps:
            node.ops = TorchOps()


class Params:
    """The parameters that a model has now."""

    def __init__(self, model: Model) -> None:
        named = [(node, name) for node in model.walk() for name in node.param_names]
        self._model = model
        self._named = [(node, name) for node, name in named if node.has_param(name)]
        self.arrays: List[Any] = [node.get_param(name) for node, name in self._named]
        self.are_all = len(self.arrays) == len(named)

    def are_of(self, model: Model) -> bool:
        """Whether they are those of a model still. They may have been changed in place."""
        now = (node.get_param(name) for node, name in self._named)
        return model is self._model and all(a is b for a, b in zip(now, self.arrays))


class RowsFinder:
    """Finds the function of a model from rows to rows in prediction, on its present parameters.
    Copies and pickles have found nothing yet."""

    def __init__(self) -> None:
        self._found: Optional[Tuple[Params, Optional[Rows]]] = None

    def find(self, model: Model) -> Optional[Rows]:
        """RETURNS (Optional[Rows]): None if a layer is not known, has no parameters yet, or is on a
        GPU."""
        found = self._found
        if found is None or not found[0].are_of(model):
            params = Params(model)
            is_known = params.are_all and all(
                node._func in _MAKERS and isinstance(node.ops, NumpyOps) for node in model.walk()
            )
            found = self._found = params, _make(model) if is_known else None
        return found[1]

    def __reduce__(self) -> Tuple[Any, ...]:
        return RowsFinder, ()


def _make(model: Model) -> Rows:
    return _MAKERS[model._func](model)


def as_tensor(X: Any) -> Tensor:
    """An array, not copied unless it is read-only, as in docs that were saved."""
    return torch.from_numpy(X if X.flags.writeable else X.copy())


def get_tensor(model: Model, name: str) -> Tensor:
    """A parameter, not copied."""
    return as_tensor(model.get_param(name))


def _make_chain(model: Model) -> Rows:
    parts = [_make(layer) for layer in model.layers]
    return lambda X: reduce(lambda Y, part: part(Y), parts, X)


def _make_linear(model: Model) -> Rows:
    W, b = get_tensor(model, "W"), get_tensor(model, "b")
    return lambda X: torch.addmm(b, X, W.t())


def _make_maxout(model: Model) -> Rows:
    W, b = get_tensor(model, "W"), get_tensor(model, "b")  # (n_out, n_pieces, n_in)
    weight, bias = W.flatten(0, 1).t(), b.flatten()
    return lambda X: torch.addmm(bias, X, weight).unflatten(1, b.shape).amax(dim=2)


def _make_norm(model: Model) -> Rows:
    G, b = get_tensor(model, "G"), get_tensor(model, "b")
    return lambda X: F.layer_norm(X, G.shape, G, b, _NORM_EPSILON)


def _make_window(model: Model) -> Rows:
    size = model.attrs["window_size"]

    def expand(X: Tensor) -> Tensor:
        n_rows, width = X.shape
        # The rows of a window follow each other in memory.
        padded = F.pad(X, (0, 0, size, size))
        return padded.as_strided((n_rows, (2 * size + 1) * width), (width, 1)).contiguous()

    return expand


def _make_residual(model: Model) -> Rows:
    inner = _make(model.layers[0])
    return lambda X: inner(X) + X


def _make_nothing(model: Model) -> Rows:
    return lambda X: X


_MAKERS: Dict[Any, Callable[[Model], Rows]] = {
    chain_forward: _make_chain,
    dropout_forward: _make_nothing,
    linear_forward: _make_linear,
    maxout_forward: _make_maxout,
    layernorm_forward: _make_norm,
    residual_forward: _make_residual,
    expand_window_forward: _make_window,
}


def apply_padded(rows: Rows, X: Tensor, lengths: Sequence[int], pad: int) -> Tensor:
    """Apply a function to sequences that follow each other, with `pad` rows of zeros before,
    between and behind them, as Thinc's `with_array(pad=...)`."""
    if not pad:
        return rows(X)
    shifts = pad * np.arange(1, len(lengths) + 1)
    places = torch.from_numpy(np.arange(len(X)) + np.repeat(shifts, lengths))
    padded = X.new_zeros(len(X) + pad * (len(lengths) + 1), X.size(1))
    return rows(padded.index_copy_(0, places, X)).index_select(0, places)
