"""Our own folder: config.json, model.safetensors, meta.json; with a softmax also
softmax.safetensors and vocab.txt."""

import json
from pathlib import Path
from typing import Any, Callable, Dict, Optional

import safetensors
import safetensors.torch
import srsly
import torch
from safetensors import SafetensorError

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..errors import Errors
from ..util.atomic import atomic_folder
from .files import CheckpointFiles
from .reader import (
    CheckpointReader,
    SoftmaxWeights,
    StateDict,
    no_initial_state,
    read_words,
    write_words,
)

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
META_FILE = "meta.json"
SOFTMAX_FILE = "softmax.safetensors"
VOCAB_FILE = "vocab.txt"


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
    config (BiLMConfig): the shape of the folder.
    RETURNS (StateDict): weights, float32.
    RAISES (ValueError): EL033 if the file cannot be read.
    """
    state = _load(files.path / WEIGHTS_FILE)
    return {**no_initial_state(config), **state}


def read_native_softmax(files: CheckpointFiles) -> Optional[SoftmaxWeights]:
    """Read the softmax.

    files (CheckpointFiles): the folder.
    RETURNS (Optional[SoftmaxWeights]): weights, float32; None if the folder has none.
    RAISES (ValueError): EL033 if a file cannot be read.
    """
    path = files.path / SOFTMAX_FILE
    if not path.exists():
        return None
    state = _load(path)
    with safetensors.safe_open(path, "pt") as file:
        about = file.metadata() or {}
    settings = json.loads(about.get("settings", "{}"))
    words = read_words(files.path / VOCAB_FILE)
    return SoftmaxWeights(about.get("kind", "full"), settings, state, words)


def _load(path: Path) -> StateDict:
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
    softmax: Optional[SoftmaxWeights] = None,
    meta: Optional[Dict[str, Any]] = None,
    dtype: torch.dtype = torch.float32,
    write_more: Optional[Callable[[Path], None]] = None,
) -> None:
    """Write a checkpoint: into a folder beside it, which then takes its name.

    bilm (BiLM): what to write.
    folder (Path): where; replaced if it holds a checkpoint of ours.
    softmax (Optional[SoftmaxWeights]): what it was trained with, if that is to be kept.
    meta (Optional[Dict[str, Any]]): what to tell readers of meta.json.
    dtype (torch.dtype): type of the stored numbers.
    write_more (Optional[Callable[[Path], None]]): writes further files into the folder
        before it takes its name.
    RAISES (ValueError): EL034 if the folder exists and is something else.
    """
    if folder.exists() and not matches_native(CheckpointFiles(folder)):
        raise ValueError(Errors.EL034.format(path=folder))
    with atomic_folder(folder) as beside:
        srsly.write_json(beside / CONFIG_FILE, bilm.config.to_dict())
        srsly.write_json(beside / META_FILE, meta or {})
        _save(bilm.state_dict(), beside / WEIGHTS_FILE, dtype)
        if softmax is not None:
            about = {"kind": softmax.kind, "settings": json.dumps(softmax.settings)}
            _save(softmax.state, beside / SOFTMAX_FILE, dtype, about)
            write_words(beside / VOCAB_FILE, softmax.words)
        if write_more is not None:
            write_more(beside)


def _save(
    state: StateDict, path: Path, dtype: torch.dtype, about: Optional[Dict[str, str]] = None
) -> None:
    tensors = {
        name: t.detach().to(dtype if t.is_floating_point() else t.dtype).cpu().contiguous()
        for name, t in state.items()
    }
    # Through bytes: save_file would leave a file that only its owner can read.
    path.write_bytes(safetensors.torch.save(tensors, metadata=about))


native_reader = CheckpointReader(
    matches_native, read_native_config, read_native_state, read_native_softmax
)
