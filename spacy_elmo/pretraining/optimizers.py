"""torch's optimizers by name, and their state as named tensors."""

from typing import Any, Callable, Dict, Tuple

import torch
from torch import Tensor, nn

from ..errors import Errors
from .settings import invalid

_MAKERS: Dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adagrad": torch.optim.Adagrad,
    "sgd": torch.optim.SGD,
}
OPTIMIZERS = tuple(_MAKERS)


def make_optimizer(module: nn.Module, name: str, settings: Dict[str, Any]) -> torch.optim.Optimizer:
    """Make an optimizer for all weights of a module.

    module (nn.Module): what to train.
    name (str): one of `OPTIMIZERS`.
    settings (Dict[str, Any]): further arguments of torch's class, such as "betas".
    RETURNS (torch.optim.Optimizer): with a learning rate that the loop sets.
    RAISES (ValueError): EL092 for settings that it does not have.
    """
    # One pass over all weights instead of one for each: several times faster.
    fused = {} if "foreach" in settings or "fused" in settings else {"fused": True}
    try:
        return _MAKERS[name](module.parameters(), lr=0.0, **fused, **settings)
    except (TypeError, ValueError, RuntimeError) as err:
        raise ValueError(Errors.EL092.format(name=name, error=err)) from err


def try_optimizer(pairs: Dict[str, Any]) -> None:
    """Do a step on a few weights: some settings are only looked at there.

    pairs (Dict[str, Any]): as `parse_settings`.
    RAISES (ValueError): EL091 and EL092 for settings that cannot be used.
    """
    name, settings = parse_settings(pairs)
    module = nn.Linear(1, 1)
    optimizer = make_optimizer(module, name, settings)
    module(torch.ones(1, 1)).sum().backward()
    try:
        optimizer.step()
    except Exception as err:
        raise ValueError(Errors.EL092.format(name=name, error=err)) from err


def count_numbers(name: str) -> int:
    """name (str): one of `OPTIMIZERS`. RETURNS (int): numbers that it remembers of each
    weight at most."""
    return {"adagrad": 1, "sgd": 1}.get(name, 2)


def get_tensors(optimizer: torch.optim.Optimizer) -> Dict[str, Tensor]:
    """optimizer (torch.optim.Optimizer): any of ours. RETURNS (Dict[str, Tensor]): What
    it remembers, as "number of the weight.name"."""
    return {
        f"{i}.{name}": value.detach().cpu()
        for i, weight in enumerate(w for g in optimizer.param_groups for w in g["params"])
        for name, value in optimizer.state[weight].items()
        if isinstance(value, Tensor)
    }


def set_tensors(optimizer: torch.optim.Optimizer, tensors: Dict[str, Tensor]) -> None:
    """Give an optimizer back what `get_tensors` took.

    optimizer (torch.optim.Optimizer): of the same kind, for the same weights.
    tensors (Dict[str, Tensor]): what it remembered.
    """
    state: Dict[int, Dict[str, Tensor]] = {}
    for key, value in tensors.items():
        number, name = key.split(".", 1)
        state.setdefault(int(number), {})[name] = value.clone()
    groups = optimizer.state_dict()["param_groups"]
    # torch's own method puts each tensor where its weight is.
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def parse_settings(pairs: Dict[str, Any]) -> Tuple[str, Dict[str, Any]]:
    """pairs (Dict[str, Any]): a block with "name" and settings.
    RETURNS (Tuple[str, Dict[str, Any]]): the name, the rest.
    RAISES (ValueError): EL091 if the name is none of `OPTIMIZERS`."""
    rest = dict(pairs)
    name = rest.pop("name", "adam")
    if name not in OPTIMIZERS:
        raise invalid("training.optimizer", "name", name, f"one of {OPTIMIZERS}")
    return name, rest
