"""Our own format: a folder with config.json, model.safetensors, meta.json and digests.json; with a
softmax also softmax.safetensors and vocab.txt."""

import json
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Optional

import srsly
import torch

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.weights import check_headers, plan_weights
from ..errors import Errors
from ..files import (
    DIGESTS_FILE,
    atomic_folder,
    check_digests,
    name_previous,
    parse_json_object,
    read_json_object,
    write_digests,
)
from ..utils import show_names, show_reason
from .formats import CheckpointFiles, CheckpointReader, SoftmaxWeights, read_words, write_words
from .tensors import (
    StateDict,
    read_headers,
    read_metadata,
    read_tensors,
    restore_headers,
    restore_rows,
    round_rows,
    write_tensors,
)

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
META_FILE = "meta.json"
SOFTMAX_FILE = "softmax.safetensors"
VOCAB_FILE = "vocab.txt"
FILES = (CONFIG_FILE, WEIGHTS_FILE, META_FILE, SOFTMAX_FILE, VOCAB_FILE, DIGESTS_FILE)
# Keys that older files lack; the defaults apply.
_OPTIONAL_KEYS = {"n_words", "vector_width"}


def matches_native(files: CheckpointFiles) -> bool:
    """Whether the path is a folder with our file names in it."""
    names = (CONFIG_FILE, WEIGHTS_FILE)
    return files.weights_path is None and all((files.folder / name).exists() for name in names)


def is_native(folder: Path) -> bool:
    """Whether a folder is a checkpoint that we wrote. Other libraries use the same names for the
    config and the weights."""
    return matches_native(CheckpointFiles(folder)) and (folder / DIGESTS_FILE).exists()


def read_native_config(files: CheckpointFiles) -> BiLMConfig:
    """Read the shape, and compare it with the shapes of the weights."""
    path = files.folder / CONFIG_FILE
    check_digests(files.folder, [CONFIG_FILE])
    try:
        values = read_json_object(path)
        known = {field.name for field in fields(BiLMConfig)}
        if missing := known - _OPTIONAL_KEYS - set(values):
            raise ValueError(f"it has no {show_names(missing)}")
        if unknown := set(values) - known:
            raise ValueError(f"it has unknown keys: {show_names(unknown)}")
        config = BiLMConfig(**values)
    except ValueError as err:
        raise ValueError(Errors.EL032.format(path=path, error=show_reason(err))) from err
    weights = files.folder / WEIGHTS_FILE
    headers = restore_headers(read_headers(weights), str(weights))
    check_headers(plan_weights(config), headers, str(weights))
    return config


def read_native_state(files: CheckpointFiles, config: BiLMConfig) -> StateDict:
    """Read the weights, float32."""
    path = files.folder / WEIGHTS_FILE
    check_digests(files.folder, [WEIGHTS_FILE])
    return restore_rows(read_tensors(path), str(path))


def read_native_softmax(files: CheckpointFiles) -> Optional[SoftmaxWeights]:
    """Read the softmax; None if the folder has none."""
    folder, path = files.folder, files.folder / SOFTMAX_FILE
    if not path.exists():
        return None
    check_digests(folder, [SOFTMAX_FILE, VOCAB_FILE])
    metadata = read_metadata(path)
    try:
        settings = parse_json_object(metadata.get("settings", "{}").encode("utf-8"))
    except ValueError as err:
        raise ValueError(Errors.EL112.format(path=path, problem=show_reason(err))) from err
    state = restore_rows(read_tensors(path), str(path))
    kind = metadata.get("kind", "full")
    return SoftmaxWeights(kind, settings, state, read_words(folder / VOCAB_FILE))


def read_meta(folder: Path) -> Dict[str, Any]:
    """Read the content of meta.json; empty without that file."""
    folder = CheckpointFiles(folder).folder
    if not (folder / META_FILE).exists():
        return {}
    check_digests(folder, [META_FILE])
    return read_json_object(folder / META_FILE)


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

    folder (Path): replaced if it holds a checkpoint of ours.
    softmax (Optional[SoftmaxWeights]): the softmax, if it is to be kept.
    meta (Optional[Dict[str, Any]]): content of meta.json.
    dtype (torch.dtype): type of the stored numbers.
    round_weights, round_softmax (bool): store the matrices of the biLM or of the softmax in 8 bits
        a number, with a scale for each row: a quarter of the size; log-probabilities differ by
        about 0.01 then.
    write_more (Optional[Callable[[Path], None]]): writes further files into the folder.
    RAISES (ValueError): EL034 if the folder exists and is something else, EL106 for NaN or
        infinite weights, EL145 if the folder cannot be written. The old folder is kept then.
    """

    def write(name: str, state: StateDict, is_rounded: bool, **metadata: str) -> None:
        # Scales are always float32.
        stored_type = torch.float32 if is_rounded else dtype
        state = round_rows(state) if is_rounded else state
        write_tensors(temporary / name, state, stored_type, metadata or None)

    with checkpoint_folder(folder, is_native) as temporary:
        srsly.write_json(temporary / CONFIG_FILE, bilm.config.to_dict())
        srsly.write_json(temporary / META_FILE, meta or {})
        write(WEIGHTS_FILE, bilm.state_dict(), round_weights)
        if softmax is not None:
            settings = json.dumps(softmax.settings)
            write(SOFTMAX_FILE, softmax.state, round_softmax, kind=softmax.kind, settings=settings)
            write_words(temporary / VOCAB_FILE, softmax.words)
        if write_more is not None:
            write_more(temporary)


@contextmanager
def checkpoint_folder(folder: Path, may_replace: Callable[[Path], bool]) -> Iterator[Path]:
    """Write a folder atomically, with the digests of its files. An existing folder, and
    NAME.previous, which would be deleted, are replaced if `may_replace` allows it. RAISES
    (ValueError): EL034 if not, EL145 if the folder cannot be written; the old one is kept then."""
    try:
        for path in (folder, name_previous(folder)):
            if path.exists() and not may_replace(path):
                raise ValueError(Errors.EL034.format(path=path))
        with atomic_folder(folder) as temporary:
            yield temporary
            write_digests(temporary)
    except OSError as err:
        raise ValueError(Errors.EL145.format(path=folder, error=err.strerror or err)) from err


native_reader = CheckpointReader(
    matches_native, read_native_config, read_native_state, read_native_softmax
)
