"""Fill a module with weights: all of them, in the right shapes, or none."""

from typing import Dict

from torch import Tensor, nn

from ..errors import Errors


def load_weights(module: nn.Module, state: Dict[str, Tensor], source: str) -> None:
    """Copy weights into a module in place.

    module (nn.Module): what to fill; untouched if anything is wrong.
    state (Dict[str, Tensor]): weights by the names of `module.state_dict()`, any
        floating-point type.
    source (str): where they come from, for messages.
    RAISES (ValueError): EL020 for missing or unexpected names, EL021 for shapes,
        EL022 for another type of numbers.
    """
    expected = module.state_dict()
    missing = sorted(set(expected) - set(state))
    unexpected = sorted(set(state) - set(expected))
    if missing or unexpected:
        raise ValueError(
            Errors.EL020.format(
                source=source,
                missing=", ".join(missing) or "none",
                unexpected=", ".join(unexpected) or "none",
            )
        )
    for name, tensor in state.items():
        if tensor.shape != expected[name].shape:
            found, wanted = tuple(tensor.shape), tuple(expected[name].shape)
            raise ValueError(
                Errors.EL021.format(source=source, name=name, found=found, expected=wanted)
            )
        if expected[name].is_floating_point() and not tensor.is_floating_point():
            raise ValueError(Errors.EL022.format(source=source, name=name, found=str(tensor.dtype)))
    module.load_state_dict(state)
