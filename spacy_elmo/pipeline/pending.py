"""`PendingBatch`: what listeners were sent, until their gradients are back."""

from functools import partial
from typing import Any, Callable, Dict, List, Tuple, cast

from spacy.tokens import Doc
from thinc.types import Floats2d

from ..layers.elmo_layers import no_backprop

Backprop = Callable[..., Any]


class Gradient:
    """The sum of what listeners send back."""

    def __init__(self) -> None:
        self.arrays: List[Floats2d] = []

    def add(self, arrays: List[Floats2d]) -> None:
        """arrays (List[Floats2d]): as the listener got them; kept unchanged."""
        if not self.arrays:
            self.arrays = [array.copy() for array in arrays]
            return
        for total, array in zip(self.arrays, arrays):
            total += array


class PendingBatch:
    """One batch on its way through the listeners. A copy of the component has none: its
    gradients belong to the weights that made the batch.

    backprop_layers (Backprop): from gradients of the layers into the biLM.
    backprop_mix (Backprop): of a scalar mix, from its gradients to those of the layers.
    """

    def __init__(self, backprop_layers: Backprop, backprop_mix: Backprop) -> None:
        self._backprop_layers = backprop_layers
        self._backprop_mix = backprop_mix
        self._d_layers = Gradient()
        self._d_mixed = Gradient()

    def make_callback(self, of_layers: bool, losses: Dict[str, float], name: str) -> Callable:
        """Make what a listener calls with its gradients.

        of_layers (bool): whether it got the layers, not their mix.
        losses (Dict[str, float]): gets the squared gradient.
        name (str): under which name.
        RETURNS (Callable): gradients -> no gradients of docs.
        """
        # A plain function with plain arguments: pipelines are pickled in training, too.
        return partial(_collect, self._d_layers if of_layers else self._d_mixed, losses, name)

    def flush(self) -> bool:
        """Send what has come back through the model. RETURNS (bool): whether anything had."""
        if not self._d_mixed.arrays and not self._d_layers.arrays:
            return False
        learns = self._backprop_layers is not no_backprop
        if self._d_mixed.arrays:
            d_layers = self._backprop_mix(self._d_mixed.arrays, to_layers=learns)
            if learns:
                self._d_layers.add(d_layers)
        self._backprop_layers(self._d_layers.arrays)
        return True

    def __reduce__(self) -> Tuple[Callable[[], None], Tuple]:
        return _no_batch, ()


def _no_batch() -> None:
    """What a copy has in the place of a batch."""


def _collect(
    gradient: Gradient, losses: Dict[str, float], name: str, dYs: List[Floats2d]
) -> List[Doc]:
    gradient.add(dYs)
    losses[name] += sum(float(cast(Any, dY**2).sum()) for dY in dYs)
    return []
