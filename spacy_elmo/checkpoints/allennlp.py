"""AllenNLP / bilm-tf: options.json and an HDF5 file of weights.

Sources: bilm-tf `model.py`, `data.py` and `training.py`, AllenNLP `elmo.py`.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ContextManager, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..bilm.batch import BOS_WORD, EOS_WORD
from ..bilm.config import BiLMConfig
from ..bilm.weights import N_SPECIAL_WORDS, TensorHeader, check_headers, check_names
from ..bilm.word_table import WordTable
from ..errors import Errors
from ..files import check_digests
from .allennlp_layout import EMBEDDING, PROJECTION, WORD_PROJECTION, plan_datasets, to_state
from .allennlp_options import config_from_options, read_options_file
from .checkpoint_files import CheckpointFiles
from .formats import CheckpointReader, SoftmaxWeights, read_words
from .hdf5 import HDF5Dataset, HDF5File, find_dataset, h5py, list_datasets, open_hdf5
from .hdf5_numbers import check_sizes, read_numbers
from .tensors import StateDict

OPTIONS_FILE = "options.json"
VOCAB_FILE = "vocab.txt"
SOFTMAX_WEIGHT = "softmax/W"
SOFTMAX_BIAS = "softmax/b"
_SPECIAL = (BOS_WORD, EOS_WORD, "<UNK>")
# A model of one layer is dumped without the wrapper of several.
_CELL, _ONLY_CELL = "/RNN/MultiRNNCell/Cell0/LSTMCell/", "/RNN/LSTMCell/"


def matches_allennlp(files: CheckpointFiles) -> bool:
    """Whether there is an options.json with an HDF5 file, or a pair of files."""
    if files.weights_path is not None:
        return files.path.suffix == ".json"
    return (files.folder / OPTIONS_FILE).exists() and any(files.folder.glob("*.hdf5"))


def find_pair(files: CheckpointFiles) -> Tuple[Path, Path]:
    """Find the two files of a checkpoint.

    files (CheckpointFiles): the pair itself, or a folder that holds one.
    RETURNS (Tuple[Path, Path]): options and weights.
    RAISES (ValueError): EL035 if a folder holds several files of weights.
    """
    if files.weights_path is not None:
        return files.path, files.weights_path
    paths = sorted(p for p in files.folder.glob("*.hdf5") if not _is_softmax(p))
    if len(paths) != 1:
        names = ", ".join(p.name for p in paths) or "none"
        raise ValueError(Errors.EL035.format(path=files.path, found=names))
    return files.folder / OPTIONS_FILE, paths[0]


def _is_softmax(path: Path) -> bool:
    return "softmax" in path.name


def read_options(path: Path) -> BiLMConfig:
    """Read a shape from an options.json alone.

    path (Path): the file.
    RETURNS (BiLMConfig): the shape.
    RAISES (ValueError): EL030 if there is no file, EL032 if it is not JSON, EL104 if it is
        not what was written; else as `config_from_options`.
    """
    CheckpointFiles(path).require()
    return _read_options(path, known_only=True)


def _read_options(path: Path, known_only: bool) -> BiLMConfig:
    options = read_options_file(path)
    words = [] if "char_cnn" in options else _read_table_words(path.parent)
    config = config_from_options(options, str(path), len(words))
    check_digests(path.parent, [path.name], known_only=known_only)
    if config.input == "words":
        check_digests(path.parent, [VOCAB_FILE], known_only=True)
    return config


def _read_table_words(folder: Path) -> List[str]:
    """The words of a model that reads no characters; none without a usable vocabulary."""
    path = folder / VOCAB_FILE
    words = read_words(path) if path.exists() else []
    # Without a row for unknown words bilm-tf drops them, and misaligns the sentence.
    return words[len(_SPECIAL) :] if tuple(words[: len(_SPECIAL)]) == _SPECIAL else []


def read_allennlp_config(files: CheckpointFiles) -> BiLMConfig:
    """Read the shape of a pair of files, and compare it with the weights' own.

    files (CheckpointFiles): the pair, or its folder.
    RETURNS (BiLMConfig): the shape.
    RAISES (ValueError): as `read_options`; EL038 without h5py, EL033 if the weights cannot
        be read, EL020 to EL022 if they are of another shape, EL108 to EL110 if they are not
        stored as weights are.
    """
    options_path, weights_path = find_pair(files)
    config = _read_options(options_path, known_only=files.weights_path is not None)
    with _open(weights_path) as file:
        # AllenNLP's own trainer projects even where the width stays the same: the options
        # do not tell, the weights do.
        if not config.projection and _find(file, PROJECTION) is not None:
            config = replace(config, projection=True)
        _find_weights(file, config, list_datasets(file))
    return config


def read_allennlp_state(files: CheckpointFiles, config: BiLMConfig) -> StateDict:
    """Read the weights.

    files (CheckpointFiles): the pair, or its folder.
    config (BiLMConfig): the shape of the pair.
    RETURNS (StateDict): weights, float32.
    RAISES (ValueError): as `read_allennlp_config`; EL104, EL106 and EL111 if the numbers
        are not what was written.
    """
    options_path, path = find_pair(files)
    check_digests(path.parent, [path.name], known_only=files.weights_path is not None)
    with _open(path) as file:
        datasets = _find_weights(file, config)
        state = to_state(config, partial(_read_weight, config, datasets))
    if config.input == "words":
        words = _read_table_words(options_path.parent)
        state.update(_fill_table(config, words, state.pop(EMBEDDING)))
    return state


def _open(path: Path) -> ContextManager[HDF5File]:
    if h5py is None:
        raise ValueError(Errors.EL038.format(path=path))
    return open_hdf5(path)


def _find(file: HDF5File, name: str) -> Optional[HDF5Dataset]:
    return find_dataset(file, name) or find_dataset(file, name.replace(_CELL, _ONLY_CELL))


def _find_weights(
    file: HDF5File, config: BiLMConfig, names: Sequence[str] = ()
) -> Dict[str, HDF5Dataset]:
    """The datasets of a biLM by their names, compared with its shape; those of a one-layer
    model get a layer's name. No number is read. Of `names` there may be no other ones."""
    expected = {name: TensorHeader(dataset.shape) for name, dataset in plan_datasets(config)}
    found = {name: dataset for name in expected if (dataset := _find(file, name)) is not None}
    if config.n_filters == config.direction_width and not set(WORD_PROJECTION) & set(found):
        for name in WORD_PROJECTION:
            expected.pop(name, None)
    others = {name.replace(_ONLY_CELL, _CELL) for name in names}
    check_names(expected, {**dict.fromkeys(others), **found}, str(file.path))
    _check_datasets(file, expected, found)
    return found


def _check_datasets(
    file: HDF5File, expected: Dict[str, TensorHeader], found: Dict[str, HDF5Dataset]
) -> None:
    headers = {name: TensorHeader(dataset.shape, dataset.dtype) for name, dataset in found.items()}
    check_headers(expected, headers, str(file.path))
    check_sizes(file, list(found.values()))


def _read_weight(config: BiLMConfig, datasets: Dict[str, HDF5Dataset], name: str) -> NDArray:
    if name in datasets:
        return read_numbers(datasets[name])
    # The projection of words that bilm-tf left out: a product with the identity is exact.
    weight, _ = WORD_PROJECTION
    n = config.n_filters
    return np.eye(n, dtype=np.float32) if name == weight else np.zeros(n, dtype=np.float32)


def _fill_table(config: BiLMConfig, words: List[str], embedding: Tensor) -> StateDict:
    """The weights of a word table from rows in the order of the vocabulary."""
    table = WordTable(config)
    table.fill(words, embedding[N_SPECIAL_WORDS:])
    state = {**table.state_dict(), "special": embedding[:N_SPECIAL_WORDS]}
    return {f"word_table.{name}": tensor for name, tensor in state.items()}


def read_allennlp_softmax(files: CheckpointFiles) -> Optional[SoftmaxWeights]:
    """Read the softmax in the folder of the weights: a file *softmax*.hdf5, with vocab.txt.

    files (CheckpointFiles): the folder; a pair of files has no softmax.
    RETURNS (Optional[SoftmaxWeights]): weights, float32; None if there are none.
    RAISES (ValueError): EL020 for missing datasets, EL021 if they do not fit the
        vocabulary; else as `read_allennlp_state`.
    """
    folder = files.folder
    paths = sorted(p for p in folder.glob("*.hdf5") if _is_softmax(p))
    vocab = folder / VOCAB_FILE
    if files.weights_path is not None or not paths or not vocab.exists():
        return None
    words = read_words(vocab)
    width = _read_options(folder / OPTIONS_FILE, known_only=False).direction_width
    expected = {
        SOFTMAX_WEIGHT: TensorHeader((len(words), width)),
        SOFTMAX_BIAS: TensorHeader((len(words),)),
    }
    check_digests(folder, [paths[0].name, VOCAB_FILE])
    with _open(paths[0]) as file:
        found = {name: data for name in expected if (data := find_dataset(file, name)) is not None}
        _check_datasets(file, expected, found)
        weight, bias = (torch.from_numpy(read_numbers(found[name])) for name in expected)
    return SoftmaxWeights("full", {}, {"weight": weight, "bias": bias}, words)


allennlp_reader = CheckpointReader(
    matches_allennlp, read_allennlp_config, read_allennlp_state, read_allennlp_softmax
)
