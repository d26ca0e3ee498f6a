"""A training config of one's own, with the biLM of the runs in the place of its own."""

from dataclasses import fields
from typing import Any, Dict, List, Optional

from thinc.api import Config

from ..bilm.config import BiLMConfig
from ..errors import Errors
from ..layers.listener import TOK2VEC_ARCHITECTURES

_ELMO = "elmo"
_SHAPE = tuple(field.name for field in fields(BiLMConfig))
_LISTS = ("frozen_components", "annotating_components")


def merge_own(preset: Config, own: Config, component: str, *, names_weights: bool) -> Config:
    """Take all but the biLM from a config.

    preset (Config): with the component "elmo" of the runs.
    own (Config): the config. Its component "elmo", whatever its name, keeps its place in the
        pipeline and its settings, but for the shape and what loads the weights.
    component (str): factory of the component to train.
    names_weights (bool): whether the weights of the runs were named; else the config's may be
        none but the bundled ones.
    RETURNS (Config): the config, with the component "elmo", which comes first where it had none.
    RAISES (ValueError): EL230 if it has no `ElmoTok2Vec` with word features for the component,
        EL316 for a biLM of its own, EL317 for several.
    """
    tok2vec = own.get("components", {}).get(component, {}).get("model", {}).get("tok2vec", {})
    if tok2vec.get("@architectures") not in TOK2VEC_ARCHITECTURES or not tok2vec.get("embed"):
        raise ValueError(Errors.EL230.format(component=component))
    own = own.copy()
    _rename_elmo(own)
    block = own["components"].pop(_ELMO, {})
    initialize = own.get("initialize", {}).get("components", {}).pop(_ELMO, {})
    if not names_weights:
        _require_bundled(block, initialize, preset)
    expected = preset["components"][_ELMO]
    model = block.pop("model", {})
    settings = {key: value for key, value in model.items() if key not in _SHAPE}
    expected["model"].update(settings)
    expected.update({key: value for key, value in block.items() if key != "source"})
    initialize.pop("loader", None)
    preset["initialize"]["components"][_ELMO].update(initialize)
    # Of the component, nothing is the preset's, nor what reads its corpora and scores it.
    del preset["components"][component]
    preset["training"].pop("score_weights", None)
    for part in own.get("corpora", {}):
        preset["corpora"].pop(part, None)
    pipeline: List[str] = own["nlp"]["pipeline"]
    config = preset.merge(own)
    config["nlp"]["pipeline"] = pipeline if _ELMO in pipeline else [_ELMO, *pipeline]
    return config


def remove_elmo(config: Config) -> None:
    """config (Config): whose component "elmo" is removed, wherever it is named."""
    del config["components"][_ELMO]
    components = config["initialize"].get("components", {})
    components.pop(_ELMO, None)
    if not components:
        config["initialize"].pop("components", None)
    config["nlp"]["pipeline"] = _without_elmo(config["nlp"]["pipeline"])
    for key in _LISTS:
        if key in config["training"]:
            config["training"][key] = _without_elmo(config["training"][key])


def _without_elmo(names: List[str]) -> List[str]:
    return [name for name in names if name != _ELMO]


def _rename_elmo(config: Config) -> None:
    """Call the component "elmo" of a config by that name."""
    name = _find_elmo(config["components"])
    if name in (None, _ELMO):
        return
    for blocks in (config["components"], config.get("initialize", {}).get("components", {})):
        if name in blocks:
            blocks[_ELMO] = blocks.pop(name)
    training = config.get("training", {})
    for holder, key in ((config["nlp"], "pipeline"), *((training, key) for key in _LISTS)):
        if key in holder:
            holder[key] = [_ELMO if each == name else each for each in holder[key]]


def _find_elmo(blocks: Dict[str, Dict[str, Any]]) -> Optional[str]:
    names = [name for name, block in blocks.items() if _ELMO in (name, block.get("factory"))]
    if len(names) > 1:
        raise ValueError(Errors.EL317.format(names=", ".join(names)))
    return names[0] if names else None


def _require_bundled(block: Dict[str, Any], initialize: Dict[str, Any], preset: Config) -> None:
    """RAISES (ValueError): EL316 if the component "elmo" of a config has a biLM of its own."""
    model, bundled = block.get("model", {}), preset["components"][_ELMO]["model"]
    other = [key for key in _SHAPE if key in model and model[key] != bundled[key]]
    loader = preset["initialize"]["components"][_ELMO].get("loader")
    problem = f"another {other[0]}" if other else ""
    if initialize.get("loader") not in (None, loader):
        problem = "a loader"
    if "source" in block:
        problem = "a source"
    if problem:
        raise ValueError(Errors.EL316.format(problem=problem))
