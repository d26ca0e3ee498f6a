"""Read the weights of a component "elmo" from a saved pipeline."""

import configparser
import json
from dataclasses import fields
from pathlib import Path
from typing import Any, Dict, Optional

from confection import ConfigValidationError
from thinc.api import Config

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.weights import check_headers, get_headers, hash_weights, plan_weights
from ..errors import Errors
from ..files import read_file, unpack
from ..utils import show_names, show_reason
from .formats import CheckpointFiles, CheckpointReader, SoftmaxWeights, read_bilm
from .tensors import StateDict, parse_tensors

# No safetensors begin with this: it would be the size of their header.
_NAMED = b"installed model:"
CONFIG_FILE, _META_FILE, _MODEL_FILE = "config.cfg", "meta.json", "model"


def matches_pipeline(files: CheckpointFiles) -> bool:
    """Whether the path is the folder of a saved pipeline, or of one of its components."""
    folder = files.folder
    is_pipeline = (folder / CONFIG_FILE).is_file() and (folder / _META_FILE).is_file()
    is_component = (folder / _MODEL_FILE).is_file() and (folder.parent / CONFIG_FILE).is_file()
    return files.weights_path is None and (is_pipeline or is_component)


def read_pipeline_config(files: CheckpointFiles) -> BiLMConfig:
    """Read the shape of the pipeline's only "elmo", or of the component, and compare it with the
    weights."""
    folder = find_component(files.folder)
    block = _read_components(folder.parent)[folder.name]["model"]
    known = {field.name for field in fields(BiLMConfig)}
    try:
        config = BiLMConfig(**{key: value for key, value in block.items() if key in known})
    except (TypeError, ValueError) as err:
        raise _config_error(folder.parent, err) from err
    source = str(folder / _MODEL_FILE)
    check_headers(plan_weights(config), get_headers(_read_state(folder)), source)
    return config


def read_pipeline_state(files: CheckpointFiles, config: BiLMConfig) -> StateDict:
    """Read the weights, float32."""
    state = _read_state(find_component(files.folder))
    return {name: t.float() if t.is_floating_point() else t for name, t in state.items()}


def read_pipeline_softmax(files: CheckpointFiles) -> Optional[SoftmaxWeights]:
    """An "elmo" has no softmax."""
    return None


def find_component(folder: Path) -> Path:
    """Find the folder of the only "elmo" in a saved pipeline, or of the component itself. RAISES
    (ValueError): EL314 if there is not exactly one."""
    is_component = not (folder / CONFIG_FILE).is_file()
    pipeline = folder.parent if is_component else folder
    names = [
        name
        for name, block in _read_components(pipeline).items()
        if isinstance(block, dict)
        and block.get("factory") == "elmo"
        and isinstance(block.get("model"), dict)
        # Never a file outside of the pipeline.
        and name == Path(name).name
    ]
    if is_component and folder.name in names:
        return folder
    if is_component or len(names) != 1:
        raise ValueError(Errors.EL314.format(path=folder, names=show_names(names)))
    return pipeline / names[0]


def _read_components(pipeline: Path) -> Dict[str, Any]:
    try:
        text = read_file(pipeline / CONFIG_FILE).decode("utf-8")
        components = Config().from_str(text).get("components")
    except (ConfigValidationError, configparser.Error, ValueError, RecursionError) as err:
        raise _config_error(pipeline, err) from err
    return components if isinstance(components, dict) else {}


def _config_error(pipeline: Path, err: Exception) -> ValueError:
    return ValueError(Errors.EL032.format(path=pipeline / CONFIG_FILE, error=show_reason(err)))


def name_weights(bilm: BiLM, name: str) -> bytes:
    """Name an installed model, with a hash, for a pipeline that is saved without its weights.
    RAISES (ValueError): EL340 if the biLM's weights are not those of the model."""
    found = hash_weights(bilm, "fp32").hex()
    if hash_weights(read_bilm(CheckpointFiles.named(name)), "fp32").hex() != found:
        raise ValueError(Errors.EL340.format(name=name))
    return _NAMED + json.dumps({"name": name, "hash": found}).encode("utf-8")


def parse_weights(content: bytes, source: str) -> StateDict:
    """Parse saved weights, or read those of the installed model that they name. RAISES
    (ValueError): EL340 if the model has changed since, EL030 if it is not installed."""
    if not isinstance(content, bytes) or not content.startswith(_NAMED):
        return parse_tensors(content, source)
    try:
        saved = json.loads(content[len(_NAMED) :])
        name, expected = str(saved["name"]), saved["hash"]
    except (KeyError, TypeError, ValueError) as err:
        raise ValueError(Errors.EL116.format(source=source, error=err)) from err
    bilm = read_bilm(CheckpointFiles.named(name))
    if hash_weights(bilm, "fp32").hex() != expected:
        raise ValueError(Errors.EL340.format(name=name))
    return dict(bilm.state_dict())


def _read_state(folder: Path) -> StateDict:
    source = f"'{folder / _MODEL_FILE}'"
    message = unpack(read_file(folder / _MODEL_FILE), source)
    try:
        # One of the nodes has a shim: torch's part of the model.
        (shims,) = (shims for shims in message["shims"] if shims)
        content = unpack(shims[0], source)["state"]
        if not isinstance(content, bytes):
            raise TypeError(f"the state is {type(content).__name__}")
    except (KeyError, IndexError, TypeError, ValueError) as err:
        error = f"they hold no weights of a component elmo ({err!r})"
        raise ValueError(Errors.EL116.format(source=source, error=error)) from err
    return parse_weights(content, source)


pipeline_reader = CheckpointReader(
    matches_pipeline, read_pipeline_config, read_pipeline_state, read_pipeline_softmax
)
