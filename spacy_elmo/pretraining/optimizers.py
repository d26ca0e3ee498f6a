"""Adam from a config, and its state as named tensors."""

from typing import Any, Dict, Mapping

import torch
from torch import Tensor, nn

from ..errors import Errors
from .settings import invalid

NAME = "adam"
# Its two moments of each weight.
NUMBERS_PER_WEIGHT = 2
_STATE = {"step", "exp_avg", "exp_avg_sq"}
_AMSGRAD_STATE = _STATE | {"max_exp_avg_sq"}


def make_optimizer(module: nn.Module, block: Mapping[str, Any]) -> torch.optim.Optimizer:
    """Make the optimizer for the weights of a module that have a gradient.

    module (nn.Module): what to train.
    block (Mapping[str, Any]): [training.optimizer]: "name", and arguments of torch's class,
        such as "betas".
    RETURNS (torch.optim.Optimizer): with a learning rate that the loop sets.
    RAISES (ValueError): EL091 for another name than "adam", EL092 for arguments that it does
        not have.
    """
    arguments = dict(block)
    name = arguments.pop("name", NAME)
    if name != NAME:
        raise invalid("training.optimizer", "name", name, NAME)
    # One pass over all weights instead of one for each: several times faster.
    if "foreach" not in arguments:
        arguments.setdefault("fused", True)
    try:
        trained = [weight for weight in module.parameters() if weight.requires_grad]
        return torch.optim.Adam(trained, lr=0.0, **arguments)
    except (TypeError, ValueError, RuntimeError) as err:
        raise ValueError(Errors.EL092.format(name=NAME, error=err)) from err


def try_optimizer(block: Mapping[str, Any]) -> None:
    """Do a step on a few weights: torch checks some arguments only there.

    block (Mapping[str, Any]): as for `make_optimizer`.
    RAISES (ValueError): EL091 and EL092 for a block that cannot be used.
    """
    module = nn.Linear(1, 1)
    optimizer = make_optimizer(module, block)
    module(torch.ones(1, 1)).sum().backward()
    try:
        optimizer.step()
    except Exception as err:
        raise ValueError(Errors.EL092.format(name=NAME, error=err)) from err


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
