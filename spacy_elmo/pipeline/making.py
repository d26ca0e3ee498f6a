"""Models from the arguments of a registered architecture."""

from dataclasses import fields
from typing import Any, Dict, Iterable

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..checkpoints.loaders import build_bundled_loader_v1
from ..inference.embedder import Embedder
from ..inference.modes import without_modes
from ..layers.elmo_layers import LayersSettings, elmo_layers
from ..layers.elmo_tok2vec import Tok2VecModel
from ..layers.listener import (
    MIX_KEYS,
    ElmoListener,
    replace_listener,
    replace_listener_config,
)
from ..layers.mixed_layers import mixed_layers
from ..layers.scalar_mix import MixSettings, scalar_mix
from ..layers.spans import build_window_spans_v1
from ..utils import require_known

_EMBEDDER_KEYS = ("batch_tokens", "word_cache", "precision", "n_threads")


@without_modes
def make_elmo(arguments: Dict[str, Any], learn_rate_factor: float) -> Tok2VecModel:
    """arguments (Dict[str, Any]): those of `build_elmo_v2`.
    learn_rate_factor (float): of the mix, see `MixSettings`.
    RETURNS (Tok2VecModel): a biLM with a mix of its layers.
    RAISES (ValueError): EL010 to EL017 for a value out of range.
    """
    require_known("initial_state", arguments["initial_state"], ("zero",))
    config = BiLMConfig(**_choose(arguments, (field.name for field in fields(BiLMConfig))))
    embedder = Embedder(
        BiLM(config), loader=build_bundled_loader_v1(), **_choose(arguments, _EMBEDDER_KEYS)
    )
    get_spans = arguments["get_spans"] or build_window_spans_v1()
    layers = elmo_layers(embedder, LayersSettings(get_spans, arguments["frozen"]))
    mix = _make_mix(arguments, learn_rate_factor)
    model = mixed_layers(layers, scalar_mix(config.n_layers, config.width, mix))
    model.attrs["replace_listener"] = replace_listener
    model.attrs["replace_listener_cfg"] = replace_listener_config
    return model


def make_elmo_listener(arguments: Dict[str, Any], learn_rate_factor: float) -> Tok2VecModel:
    """arguments (Dict[str, Any]): those of `build_elmo_listener_v2`.
    learn_rate_factor (float): of the mix, see `MixSettings`.
    RETURNS (Tok2VecModel): a listener with a mix.
    RAISES (ValueError): EL002 for upstream "*", EL015 for a value out of range.
    """
    width, n_layers = arguments["width"], arguments["depth"] + 1
    mix = _make_mix(arguments, learn_rate_factor)
    listener = ElmoListener(arguments["upstream"], n_layers, width)
    return mixed_layers(listener, scalar_mix(n_layers, width, mix))


def _make_mix(arguments: Dict[str, Any], learn_rate_factor: float) -> MixSettings:
    return MixSettings(**_choose(arguments, MIX_KEYS), learn_rate_factor=learn_rate_factor)


def _choose(arguments: Dict[str, Any], keys: Iterable[str]) -> Dict[str, Any]:
    return {key: arguments[key] for key in keys}
