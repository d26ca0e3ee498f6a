"""Our own folder: config.json, model.safetensors, meta.json."""

import shutil
from pathlib import Path
from typing import Any, Dict, Optional

import safetensors.torch
import srsly
import torch
from safetensors import SafetensorError

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..errors import Errors
from .files import CheckpointFiles
from .reader import CheckpointReader, StateDict

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
META_FILE = "meta.json"


def matches_native(files: CheckpointFiles) -> bool:
    """Whether the path is a folder with our file names in it."""
    folder, weights = files
    return weights is None and (folder / CONFIG_FILE).exists() and (folder / WEIGHTS_FILE).exists()


def read_native_config(files: CheckpointFiles) -> BiLMConfig:
    """Read the shape.

    files (CheckpointFiles): the folder.
    RETURNS (BiLMConfig): the shape.
    RAISES (ValueError): EL032 if config.json is no description of a shape.
    """
    path = files.path / CONFIG_FILE
    try:
        return BiLMConfig(**srsly.read_json(path))
    except (TypeError, ValueError) as err:
        raise ValueError(Errors.EL032.format(path=path, error=err)) from err


def read_native_state(files: CheckpointFiles, config: BiLMConfig) -> StateDict:
    """Read the weights.

    files (CheckpointFiles): the folder.
    config (BiLMConfig): not needed, the names in the file are the biLM's own.
    RETURNS (StateDict): weights, float32.
    RAISES (ValueError): EL033 if the file cannot be read.
    """
    path = files.path / WEIGHTS_FILE
    try:
        state = safetensors.torch.load_file(path)
    except (SafetensorError, OSError) as err:
        raise ValueError(Errors.EL033.format(path=path, error=err)) from err
    return {
        name: tensor.float() if tensor.is_floating_point() else tensor
        for name, tensor in state.items()
    }


def write_native(
    bilm: BiLM,
    folder: Path,
    *,
    meta: Optional[Dict[str, Any]] = None,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Write a checkpoint: into a folder beside it, which then takes its name.

    bilm (BiLM): what to write.
    folder (Path): where; replaced if it holds a checkpoint of ours.
    meta (Optional[Dict[str, Any]]): what to tell readers of meta.json.
    dtype (torch.dtype): type of the stored numbers.
    RAISES (ValueError): EL034 if the folder exists and is something else.
    """
    if folder.exists() and not matches_native(CheckpointFiles(folder)):
        raise ValueError(Errors.EL034.format(path=folder))
    beside = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    srsly.write_json(beside / CONFIG_FILE, bilm.config.to_dict())
    srsly.write_json(beside / META_FILE, meta or {})
    state = {name: t.to(dtype).cpu().contiguous() for name, t in bilm.state_dict().items()}
    safetensors.torch.save_file(state, beside / WEIGHTS_FILE)
    shutil.rmtree(folder, ignore_errors=True)
    beside.rename(folder)


native_reader = CheckpointReader(matches_native, read_native_config, read_native_state)
