"""`without_modes`: what a caller switched on in torch for its thread, off for a while."""

from contextlib import ExitStack
from functools import wraps
from typing import Callable, ParamSpec, TypeVar

import torch

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_AUTOCAST_DEVICES = ("cpu", "cuda")


def without_modes(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Have a function compute the same in `torch.inference_mode` and `torch.autocast`. What
    it makes in them and keeps would be of no use outside, or rounded for good.

    function (Callable[Arguments, Result]): any.
    RETURNS (Callable[Arguments, Result]): the same outside of them.
    """

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        casting = [name for name in _AUTOCAST_DEVICES if torch.is_autocast_enabled(name)]
        if not casting and not torch.is_inference_mode_enabled():
            return function(*args, **kwargs)
        with ExitStack() as modes:
            modes.enter_context(torch.inference_mode(False))
            for name in casting:
                modes.enter_context(torch.autocast(name, enabled=False))
            return function(*args, **kwargs)

    return call
