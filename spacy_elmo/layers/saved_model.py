"""Read the weights of a component's model from what Thinc wrote, and nothing else of it."""

from typing import Any, Dict, List, Tuple, cast

import numpy as np
from thinc.api import Model
from thinc.types import Floats1d

from ..errors import Errors
from ..files import unpack
from .elmo_layers import deserialize_embedder, get_embedder

# Besides the numbers: names, dimensions, and the padding of the formats.
_OVERHEAD = 1_000_000


def get_most_bytes(model: Model) -> int:
    """model (Model): of a component "elmo". RETURNS (int): bytes that its weights can take,
    as double-precision numbers."""
    state = get_embedder(model).bilm.state_dict()
    return _OVERHEAD + 8 * sum(tensor.numel() for tensor in state.values())


def load_model(model: Model, data: bytes, source: str) -> None:
    """Fill a model in place. What the message says of names, dimensions and attributes is
    compared or passed over: the config is their only source.

    model (Model): of a component "elmo"; untouched if anything is wrong.
    data (bytes): from `model.to_bytes()`.
    source (str): where it comes from, for errors.
    RAISES (ValueError): EL116 if it is no such message, EL020 to EL022 and EL033 if the
        weights do not fit.
    """
    nodes = list(model.walk())
    message = unpack(data, source)
    try:
        names = [node["name"] for node in message["nodes"]]
        state, params = _find_weights(nodes, message, source)
    except (KeyError, IndexError, TypeError) as err:
        error = f"they hold no weights of a component elmo ({err!r})"
        raise ValueError(Errors.EL116.format(source=source, error=error)) from err
    if names != [node.name for node in nodes]:
        error = f"they are of a model {names}, expected {[node.name for node in nodes]}"
        raise ValueError(Errors.EL116.format(source=source, error=error))
    mix = model.layers[1]
    for name in mix.param_names:
        _require_numbers(name, params.get(name), cast(Floats1d, mix.get_param(name)), source)
    embedder = get_embedder(model)
    deserialize_embedder(embedder, state, embedder.bilm.device)
    for name in mix.param_names:
        mix.set_param(name, mix.ops.asarray1f(cast(Any, params[name].copy())))


def _find_weights(
    nodes: List[Model], message: Dict[str, Any], source: str
) -> Tuple[bytes, Dict[str, Any]]:
    """Weights of the biLM, in safetensors; and parameters of the mix, by name."""
    (shim,) = (i for i, node in enumerate(nodes) if node.shims)
    (mix,) = (i for i, node in enumerate(nodes) if node.param_names)
    state = unpack(message["shims"][shim][0], source)["state"]
    params = message["params"][mix]
    if not isinstance(params, dict):
        raise TypeError(f"parameters of the mix are a {type(params).__name__}")
    return state, params


def _require_numbers(name: str, value: Any, expected: Floats1d, source: str) -> None:
    is_array = isinstance(value, np.ndarray) and value.dtype == expected.dtype
    if not is_array or value.shape != expected.shape or not np.isfinite(value).all():
        shape = expected.shape
        error = f"'{name}' of the mix is {value!r:.80}, expected finite numbers of shape {shape}"
        raise ValueError(Errors.EL116.format(source=source, error=error))
