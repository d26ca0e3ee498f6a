"""Our own folder: config.json, model.safetensors, meta.json, digests.json; with a softmax also
softmax.safetensors and vocab.txt."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import srsly
import torch

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.weights import check_headers, drop_former, plan_weights
from ..errors import Errors
from ..files import (
    DIGESTS_FILE,
    ContentError,
    check_digests,
    parse_json_object,
    read_digests,
    read_file,
    read_json_object,
)
from ..utils import show_names, show_reason
from .checkpoint_files import CheckpointFiles
from .formats import CheckpointReader, SoftmaxWeights, read_words, write_words
from .row_scales import restore_headers, restore_rows, round_rows
from .tensors import StateDict, read_headers, read_metadata, read_tensors, write_tensors
from .writing import checkpoint_folder

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
META_FILE = "meta.json"
SOFTMAX_FILE = "softmax.safetensors"
VOCAB_FILE = "vocab.txt"
# Keys that older descriptions lack: their defaults hold.
_LATER_KEYS = {"n_words", "vector_width"}
_MOST_JSON = 1_000_000
_MOST_SETTINGS = 10_000


def matches_native(files: CheckpointFiles) -> bool:
    """Whether the path is a folder with our file names in it."""
    folder = files.folder
    is_folder = files.weights_path is None
    return is_folder and (folder / CONFIG_FILE).exists() and (folder / WEIGHTS_FILE).exists()


def is_native(folder: Path) -> bool:
    """folder (Path): any folder. RETURNS (bool): whether it holds weights that we wrote: other
    libraries have files of the same names."""
    if not matches_native(CheckpointFiles(folder)):
        return False
    # Damaged weights of ours may be replaced; those of the first versions have no digests.
    if (folder / DIGESTS_FILE).exists():
        return True
    try:
        return bool(_read_shape(folder / CONFIG_FILE))
    except ValueError:
        return False


def find_foreign(folder: Path) -> List[str]:
    """folder (Path): of a checkpoint of ours. RETURNS (List[str]): names in it that we did not
    write, hidden ones aside."""
    known = {*read_digests(folder), DIGESTS_FILE}
    known |= {CONFIG_FILE, WEIGHTS_FILE, META_FILE, SOFTMAX_FILE, VOCAB_FILE}
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    return sorted(names - known)


def read_native_config(files: CheckpointFiles) -> BiLMConfig:
    """Read the shape, and compare it with the weights' own.

    files (CheckpointFiles): the folder.
    RETURNS (BiLMConfig): the shape.
    RAISES (ValueError): EL032 if config.json is no description of a shape, EL033 and EL256 if
        the weights cannot be read, EL020 to EL022 if they are of another shape, EL100 to EL104
        if a file is none or is not what was written.
    """
    folder, path = files.folder, files.folder / WEIGHTS_FILE
    config = _read_shape(folder / CONFIG_FILE)
    headers = drop_former(restore_headers(read_headers(path), str(path)))
    check_headers(plan_weights(config), headers, str(path))
    check_digests(folder, [CONFIG_FILE])
    if (folder / META_FILE).exists():
        check_digests(folder, [META_FILE])
    return config


def _read_shape(path: Path) -> BiLMConfig:
    content = read_file(path, _MOST_JSON)
    try:
        return _parse_shape(content)
    except (ContentError, ValueError) as err:
        raise ValueError(Errors.EL032.format(path=path, error=show_reason(err))) from err


def _parse_shape(content: bytes) -> BiLMConfig:
    values = parse_json_object(content)
    known = {field.name for field in fields(BiLMConfig)}
    for problem, keys in (
        ("it has no", known - _LATER_KEYS - set(values)),
        ("it has keys that are not known:", set(values) - known),
    ):
        if keys:
            raise ContentError(f"{problem} {show_names(keys)}")
    return BiLMConfig(**values)


def read_native_state(files: CheckpointFiles, config: BiLMConfig) -> StateDict:
    """Read the weights.

    files (CheckpointFiles): the folder.
    config (BiLMConfig): the shape of the folder.
    RETURNS (StateDict): weights, float32.
    RAISES (ValueError): EL033 and EL256 if the file cannot be read, EL104 and EL106 if its
        numbers are not what was written.
    """
    folder, path = files.folder, files.folder / WEIGHTS_FILE
    check_digests(folder, [WEIGHTS_FILE])
    return drop_former(restore_rows(read_tensors(path), str(path)))


def read_native_softmax(files: CheckpointFiles) -> Optional[SoftmaxWeights]:
    """Read the softmax.

    files (CheckpointFiles): the folder.
    RETURNS (Optional[SoftmaxWeights]): weights, float32; None if the folder has none.
    RAISES (ValueError): EL033, EL070 and EL256 if a file cannot be read, EL104 and EL106 if
        it is not what was written, EL112 if its kind or settings are unusable.
    """
    folder = files.folder
    path = folder / SOFTMAX_FILE
    if not path.exists():
        return None
    notes = read_metadata(path)
    settings = _parse_settings(path, notes.get("settings", "{}"))
    words = read_words(folder / VOCAB_FILE)
    check_digests(folder, [SOFTMAX_FILE, VOCAB_FILE])
    state = restore_rows(read_tensors(path), str(path))
    return SoftmaxWeights(notes.get("kind", "full"), settings, state, words)


def _parse_settings(path: Path, text: str) -> Dict[str, Any]:
    try:
        if len(text) > _MOST_SETTINGS:
            raise ContentError(f"its settings have {len(text)} letters")
        return parse_json_object(text.encode("utf-8"))
    except ContentError as err:
        raise ValueError(Errors.EL112.format(path=path, problem=err)) from err


def read_meta(folder: Path) -> Dict[str, Any]:
    """Read the notes of a checkpoint.

    folder (Path): the checkpoint's.
    RETURNS (Dict[str, Any]): the content of meta.json; nothing if there is none.
    RAISES (ValueError): EL100 to EL104 if it cannot be read or is not what was written.
    """
    folder = CheckpointFiles(folder).folder
    if not (folder / META_FILE).exists():
        return {}
    meta = read_json_object(folder / META_FILE, most=_MOST_JSON)
    check_digests(folder, [META_FILE])
    return meta


def write_native(
    bilm: BiLM,
    folder: Path,
    *,
    softmax: Optional[SoftmaxWeights] = None,
    meta: Optional[Dict[str, Any]] = None,
    dtype: torch.dtype = torch.float32,
    round_weights: bool = False,
    round_softmax: bool = False,
    write_more: Optional[Callable[[Path], None]] = None,
) -> None:
    """Write a checkpoint atomically. The same arguments give the same bytes.

    bilm (BiLM): what to write.
    folder (Path): where; replaced if it holds a checkpoint of ours.
    softmax (Optional[SoftmaxWeights]): what it was trained with, if that is to be kept.
    meta (Optional[Dict[str, Any]]): content of meta.json.
    dtype (torch.dtype): type of the stored numbers.
    round_weights (bool): store the matrices of the biLM in 8 bits a number, with a scale for
        each row: a quarter of their size.
    round_softmax (bool): store the matrix of the softmax in 8 bits a number, with a scale for
        each row: a quarter of its size, and log-probabilities that differ by some 0.01.
    write_more (Optional[Callable[[Path], None]]): writes further files into the folder
        before it is renamed.
    RAISES (ValueError): EL034 if the folder exists and is something else, EL106 and EL107
        for weights that are no numbers of the type, EL113 if the folder cannot be written.
        The old folder is kept then.
    """
    with checkpoint_folder(folder, is_native) as temporary:
        srsly.write_json(temporary / CONFIG_FILE, bilm.config.to_dict())
        srsly.write_json(temporary / META_FILE, meta or {})
        state = round_rows(bilm.state_dict()) if round_weights else bilm.state_dict()
        # Scales are float32 in any case.
        stored_type = torch.float32 if round_weights else dtype
        write_tensors(temporary / WEIGHTS_FILE, state, stored_type)
        if softmax is not None:
            notes = {"kind": softmax.kind, "settings": json.dumps(softmax.settings)}
            if round_softmax:
                write_tensors(temporary / SOFTMAX_FILE, round_rows(softmax.state), metadata=notes)
            else:
                write_tensors(temporary / SOFTMAX_FILE, softmax.state, dtype, notes)
            write_words(temporary / VOCAB_FILE, softmax.words)
        if write_more is not None:
            write_more(temporary)


native_reader = CheckpointReader(
    matches_native, read_native_config, read_native_state, read_native_softmax
)
