"""What a saved model holds, before it is loaded: Thinc takes parameters of any shape."""

from typing import Any, Dict

import numpy as np
from thinc.api import Model


def check_params(model: Model, message: Dict[str, Any]) -> None:
    """Require that parameters are finite numbers of possible shapes: those that the model has, or,
    if it has none yet, made of the dimensions that are saved beside them.

    model (Model): which is to be filled.
    message (Dict[str, Any]): what `Model.to_bytes` wrote, unpacked.
    RAISES (ValueError): for a parameter that is not possible. (KeyError, TypeError,
        AttributeError): for another message.
    """
    for node, saved, params in zip(model.walk(), message["nodes"], message["params"]):
        sizes = set(saved["dims"].values())
        for name, value in params.items():
            if value is None:
                continue
            if not isinstance(value, np.ndarray) or not np.isfinite(value).all():
                raise ValueError(f"'{name}' of {node.name} is {value!r:.80}, no finite numbers")
            own = node.get_param(name).shape if node.has_param(name) else None
            if value.shape != own and (own is not None or not sizes.issuperset(value.shape)):
                expected = own or f"sizes among {sorted(filter(None, sizes))}"
                raise ValueError(
                    f"'{name}' of {node.name} has shape {value.shape}, expected {expected}"
                )
