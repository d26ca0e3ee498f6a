"""AllenNLP / bilm-tf: options.json and an HDF5 file of weights, read and written.

An HDF5 file can refer to other files: by links, external storage and virtual datasets. These are
refused, and shapes and types are compared with the options before numbers are read.
"""

import math
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np
import srsly
import torch
from numpy.typing import NDArray

from ..bilm.batch import BOS_WORD, EOS_WORD
from ..bilm.config import N_SPECIAL_WORDS, BiLMConfig
from ..bilm.model import BiLM
from ..bilm.weights import TensorHeader, check_headers, check_names, check_numbers
from ..bilm.word_table import WordTable
from ..errors import Errors
from ..files import check_digests, read_json_object, require_file
from ..utils import show_reason
from .allennlp_layout import (
    EMBEDDING,
    PROJECTION,
    WORD_PROJECTION,
    config_from_options,
    make_options,
    plan_datasets,
    to_array,
    to_arrays,
    to_state,
)
from .formats import CheckpointFiles, CheckpointReader, SoftmaxWeights, read_words, write_words
from .native import checkpoint_folder
from .tensors import StateDict, translate_errors

try:
    import h5py
except ImportError:  # the extra "allennlp"
    h5py = None

OPTIONS_FILE = "options.json"
WEIGHTS_FILE = "weights.hdf5"
SOFTMAX_FILE = "softmax_weights.hdf5"
VOCAB_FILE = "vocab.txt"
SOFTMAX_WEIGHT = "softmax/W"
SOFTMAX_BIAS = "softmax/b"
_SPECIAL_WORDS = [BOS_WORD, EOS_WORD, "<UNK>"]
# The file of a model with one layer has no wrapper of several cells.
_CELL, _ONLY_CELL = "/RNN/MultiRNNCell/Cell0/LSTMCell/", "/RNN/LSTMCell/"
# Bytes of numbers for a byte of the file. Compressed weights have less than two; toy models of
# tests, which are mostly zeros, are small.
_MAX_RATIO = 8
_FREE_BYTES = 16_000_000


def matches_allennlp(files: CheckpointFiles) -> bool:
    """Whether there is an options.json with an HDF5 file, or a pair of files."""
    if files.weights_path is not None:
        return files.path.suffix == ".json"
    return (files.folder / OPTIONS_FILE).exists() and any(files.folder.glob("*.hdf5"))


def _find_pair(files: CheckpointFiles) -> Tuple[Path, Path]:
    """Find the paths of options and weights."""
    if files.weights_path is not None:
        return files.path, files.weights_path
    paths = sorted({*files.folder.glob("*.hdf5")} - {*files.folder.glob("*softmax*")})
    if len(paths) != 1:
        names = ", ".join(path.name for path in paths) or "none"
        raise ValueError(
            f"'{files.path}' must contain one .hdf5 file of weights besides the softmax, found: "
            f"{names}. Give the paths of options.json and of the weights."
        )
    return files.folder / OPTIONS_FILE, paths[0]


def read_options(path: Path) -> BiLMConfig:
    """Read a shape from an options.json alone. RAISES (ValueError): EL032 if it does not describe a
    biLM."""
    CheckpointFiles(path).require()
    check_digests(path.parent, [path.name, VOCAB_FILE])
    try:
        options = read_json_object(path)
    except ValueError as err:
        raise ValueError(Errors.EL032.format(path=path, error=show_reason(err))) from err
    words = [] if "char_cnn" in options else _read_table_words(path.parent)
    return config_from_options(options, str(path), len(words))


def _read_table_words(folder: Path) -> List[str]:
    """Read the words of a model that reads words; none without a usable vocabulary."""
    path = folder / VOCAB_FILE
    words = read_words(path) if path.exists() else []
    # Without a row for unknown words bilm-tf drops them, and misaligns the sentence.
    n_special = len(_SPECIAL_WORDS)
    return words[n_special:] if words[:n_special] == _SPECIAL_WORDS else []


def read_allennlp_config(files: CheckpointFiles) -> BiLMConfig:
    """Read the shape of a pair of files, and compare it with the weights."""
    options_path, weights_path = _find_pair(files)
    config = read_options(options_path)
    with _open(weights_path) as file:
        # AllenNLP's own trainer projects even where the width stays the same: the options do not
        # tell, the weights do.
        if not config.projection and _find(weights_path, file, PROJECTION) is not None:
            config = replace(config, projection=True)
        _find_weights(weights_path, file, config)
    return config


def read_allennlp_state(files: CheckpointFiles, config: BiLMConfig) -> StateDict:
    """Read the weights, float32."""
    options_path, path = _find_pair(files)
    check_digests(path.parent, [path.name])
    with _open(path) as file:
        datasets = _find_weights(path, file, config)

        def read(name: str) -> NDArray:
            if name in datasets:
                return _read_numbers(path, name, datasets[name])
            # bilm-tf omitted this projection of words: a product with the identity is exact.
            n = config.n_filters
            is_weight = name == WORD_PROJECTION[0]
            return np.eye(n, dtype=np.float32) if is_weight else np.zeros(n, dtype=np.float32)

        state = to_state(config, read)
    if config.input == "words":
        words = _read_table_words(options_path.parent)
        embedding = state.pop(EMBEDDING)
        table = WordTable(config)
        table.fill(words, embedding[N_SPECIAL_WORDS:])
        rows = {**table.state_dict(), "special": embedding[:N_SPECIAL_WORDS]}
        state.update({f"word_table.{name}": tensor for name, tensor in rows.items()})
    return state


def read_allennlp_softmax(files: CheckpointFiles) -> Optional[SoftmaxWeights]:
    """Read the softmax in the folder of the weights: a file *softmax*.hdf5 with vocab.txt. A pair
    of files has none."""
    folder = files.folder
    path = min(folder.glob("*softmax*.hdf5"), default=None)
    vocab = folder / VOCAB_FILE
    if files.weights_path is not None or path is None or not vocab.exists():
        return None
    check_digests(folder, [path.name, VOCAB_FILE])
    words = read_words(vocab)
    width = read_options(folder / OPTIONS_FILE).direction_width
    expected = {
        SOFTMAX_WEIGHT: TensorHeader((len(words), width)),
        SOFTMAX_BIAS: TensorHeader((len(words),)),
    }
    with _open(path) as file:
        found = {name: _find(path, file, name) for name in expected}
        found = {name: dataset for name, dataset in found.items() if dataset is not None}
        _check_datasets(path, expected, found)
        weight, bias = (
            torch.from_numpy(_read_numbers(path, name, found[name])) for name in expected
        )
    return SoftmaxWeights("full", {}, {"weight": weight, "bias": bias}, words)


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """Open an HDF5 file for reading. YIELDS (h5py.File)."""
    _require_h5py(path)
    require_file(path)
    with translate_errors(path):
        file = h5py.File(path, "r")
    with file:
        yield file


def _require_h5py(path: Path) -> None:
    if h5py is None:
        text = Errors.EL038.format(purpose=f"'{path}'", package="h5py", extra="allennlp")
        raise ValueError(text)


def _find(path: Path, file: Any, name: str) -> Optional[Any]:
    """Look up a dataset by name, "a/b"; None if it is missing. Links and references to other files
    are refused."""
    entry = file
    with translate_errors(path):
        for part in name.split("/"):
            link = entry.get(part, getlink=True) if isinstance(entry, h5py.Group) else None
            if link is None:
                return None
            if not isinstance(link, h5py.HardLink):
                raise ValueError(f"'{part}' in '{name}' is a link, which is not followed")
            entry = entry[part]
        if not isinstance(entry, h5py.Dataset):
            return None
        if entry.is_virtual or entry.external:
            raise ValueError(f"the numbers of '{name}' are stored in another file")
    return entry


def _find_weights(path: Path, file: Any, config: BiLMConfig) -> Dict[str, Any]:
    """Look up the datasets of a biLM by name, and compare names, shapes and types. No number is
    read. Names of a one-layer model are completed."""
    expected = {name: TensorHeader(dataset.shape) for name, dataset in plan_datasets(config)}
    found: Dict[str, Any] = {}
    for name in expected:
        dataset = _find(path, file, name) or _find(path, file, name.replace(_CELL, _ONLY_CELL))
        if dataset is not None:
            found[name] = dataset
    if config.n_filters == config.direction_width and not set(WORD_PROJECTION) & set(found):
        for name in WORD_PROJECTION:
            expected.pop(name, None)
    others: List[str] = []
    with translate_errors(path):
        file.visititems(lambda n, d: others.append(n) if isinstance(d, h5py.Dataset) else None)
    names = {name.replace(_ONLY_CELL, _CELL): None for name in others}
    check_names(expected, {**names, **found}, str(path))
    _check_datasets(path, expected, found)
    return found


def _check_datasets(path: Path, expected: Dict[str, TensorHeader], found: Dict[str, Any]) -> None:
    """Check that the file has numbers of these shapes and types, so that reading them takes memory
    in proportion to its size."""
    headers: Dict[str, TensorHeader] = {}
    with translate_errors(path):
        for name, dataset in found.items():
            shape = dataset.shape or ()
            headers[name] = TensorHeader(shape, dataset.dtype.name)
            is_empty = dataset.size and not dataset.id.get_storage_size()
            if is_empty and headers[name] == expected.get(name):
                raise ValueError(f"the numbers of '{name}' were never written")
            if any(chunk > size for chunk, size in zip(dataset.chunks or (), shape)):
                raise ValueError(f"the chunks of '{name}' are larger than the dataset")
    check_headers(expected, headers, str(path))
    with translate_errors(path):
        n_bytes = sum(4 * math.prod(header.shape) for header in headers.values())
        size = path.stat().st_size
        if n_bytes > _MAX_RATIO * size + _FREE_BYTES:
            raise ValueError(f"it claims {n_bytes:,} bytes of numbers in a file of {size:,}")


def _read_numbers(path: Path, name: str, dataset: Any) -> NDArray:
    with translate_errors(path):
        array: NDArray = dataset.astype("float32")[...]
    check_numbers(name, torch.from_numpy(array), str(path))
    return array


def write_allennlp(bilm: BiLM, folder: Path, softmax: Optional[SoftmaxWeights] = None) -> None:
    """Write options.json and weights.hdf5, and with a softmax softmax_weights.hdf5 and vocab.txt,
    to a folder that does not exist. RAISES (ValueError): EL039 if the format cannot hold the biLM
    or the softmax; as `write_native`."""
    _require_h5py(folder)
    config = bilm.config
    problem = ""
    if config.input != "characters":
        problem = f"this biLM reads {config.input}"
    elif config.cell_width < config.direction_width:
        problem = f"this biLM has {config.cell_width} cells for {config.direction_width} outputs"
    elif softmax is not None and set(softmax.state) != {"weight", "bias"}:
        problem = f"this softmax is of the kind '{softmax.kind}'; leave it out by `--no-softmax`"
    if problem:
        raise ValueError(Errors.EL039.format(problem=problem))
    with checkpoint_folder(folder, may_replace=lambda path: False) as temporary:
        srsly.write_json(temporary / OPTIONS_FILE, make_options(config))
        _write_arrays(temporary / WEIGHTS_FILE, to_arrays(config, bilm.state_dict()))
        if softmax is not None:
            weight, bias = to_array(softmax.state["weight"]), to_array(softmax.state["bias"])
            arrays = {SOFTMAX_WEIGHT: weight, SOFTMAX_BIAS: bias}
            _write_arrays(temporary / SOFTMAX_FILE, arrays)
            write_words(temporary / VOCAB_FILE, softmax.words)


def _write_arrays(path: Path, arrays: Mapping[str, NDArray]) -> None:
    # In memory first, so that a full disk is an OSError, and not one of HDF5.
    content = BytesIO()
    with h5py.File(content, "w") as file:
        for name, array in arrays.items():
            check_numbers(name, torch.from_numpy(array), "the model to write")
            file.create_dataset(name, data=array)
    path.write_bytes(content.getbuffer())


allennlp_reader = CheckpointReader(
    matches_allennlp, read_allennlp_config, read_allennlp_state, read_allennlp_softmax
)
