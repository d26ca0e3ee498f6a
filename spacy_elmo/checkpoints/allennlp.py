"""AllenNLP / bilm-tf: options.json and an HDF5 file of weights.

Sources: bilm-tf `model.py`, `data.py` and `training.py`, AllenNLP `elmo.py`.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import srsly
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..bilm.config import BiLMConfig
from ..bilm.word_table import WordTable
from ..characters import BOS_WORD, EOS_WORD, N_CHARACTERS
from ..errors import Errors
from .allennlp_layout import EMBEDDING, PROJECTION, list_datasets, to_state
from .files import CheckpointFiles
from .reader import (
    CheckpointReader,
    SoftmaxWeights,
    StateDict,
    no_initial_state,
    read_words,
)

try:
    import h5py
except ImportError:  # the extra "allennlp"
    h5py = None

OPTIONS_FILE = "options.json"
VOCAB_FILE = "vocab.txt"
_SPECIAL = (BOS_WORD, EOS_WORD, "<UNK>")


def matches_allennlp(files: CheckpointFiles) -> bool:
    """Whether there is an options.json with an HDF5 file, or a pair of files."""
    if files.weights_path is not None:
        return files.path.suffix == ".json"
    return (files.path / OPTIONS_FILE).exists() and any(files.path.glob("*.hdf5"))


def find_pair(files: CheckpointFiles) -> Tuple[Path, Path]:
    """Find the two files of a checkpoint.

    files (CheckpointFiles): the pair itself, or a folder that holds one.
    RETURNS (Tuple[Path, Path]): options and weights.
    RAISES (ValueError): EL035 if a folder holds several files of weights.
    """
    if files.weights_path is not None:
        return files.path, files.weights_path
    found = sorted(p for p in files.path.glob("*.hdf5") if not _is_softmax(p))
    if len(found) != 1:
        names = ", ".join(p.name for p in found) or "none"
        raise ValueError(Errors.EL035.format(path=files.path, found=names))
    return files.path / OPTIONS_FILE, found[0]


def _is_softmax(path: Path) -> bool:
    return "softmax" in path.name


def config_from_options(options: Dict[str, Any], source: str, n_words: int = 0) -> BiLMConfig:
    """Read a shape from options, tolerant of all that bilm-tf accepts.

    options (Dict[str, Any]): the content of options.json.
    source (str): the file, for messages.
    n_words (int): words of a model that reads no characters, the special ones left out.
    RETURNS (BiLMConfig): the shape.
    RAISES (ValueError): EL036 for a missing or impossible option, EL037 for a model
        of words without words, EL010 for a value out of range.
    """
    if "char_cnn" not in options and n_words == 0:
        raise ValueError(Errors.EL037.format(source=source))
    try:
        lstm = options["lstm"]
        width, cell_width = lstm["projection_dim"], lstm["dim"]
        shape: Dict[str, Any] = {"input": "words", "n_words": n_words}
        if "char_cnn" in options:
            char_cnn = options["char_cnn"]
            shape = {
                "char_width": char_cnn["embedding"]["dim"],
                "filters": char_cnn["filters"],
                "n_highway": char_cnn.get("n_highway") or 0,
                "max_chars": char_cnn["max_characters_per_token"],
                "activation": char_cnn.get("activation", "relu"),
            }
    except (KeyError, TypeError) as err:
        raise ValueError(Errors.EL036.format(source=source, problem=f"no {err}")) from err
    _check_options(options, source)
    return BiLMConfig(
        width=2 * width,
        depth=lstm.get("n_layers", 1),
        cell_width=cell_width,
        # bilm-tf leaves a clip out with null, AllenNLP with 0 too.
        cell_clip=lstm.get("cell_clip") or None,
        proj_clip=lstm.get("proj_clip") or None,
        # bilm-tf builds a plain LSTM cell where there is nothing to project down to.
        projection=cell_width > width,
        skip_connections=bool(lstm.get("use_skip_connections", False)),
        **shape,
    )


def _check_options(options: Dict[str, Any], source: str) -> None:
    lstm, char_cnn = options["lstm"], options.get("char_cnn", {})
    # 262 in released options (row 0 of the reader's table counted), 261 in training's.
    # A training configuration may leave it 0, to be filled in by the trainer.
    n_characters = char_cnn.get("n_characters") or N_CHARACTERS
    problem = ""
    if n_characters not in (N_CHARACTERS, N_CHARACTERS + 1):
        problem = f"n_characters is {n_characters}, neither 261 nor 262"
    elif lstm["dim"] < lstm["projection_dim"]:
        problem = f"dim {lstm['dim']} is below projection_dim {lstm['projection_dim']}"
    elif not options.get("bidirectional", True):
        problem = "bidirectional is false"
    if problem:
        raise ValueError(Errors.EL036.format(source=source, problem=problem))


def read_options(path: Path) -> BiLMConfig:
    """Read a shape from an options.json alone.

    path (Path): the file.
    RETURNS (BiLMConfig): the shape.
    RAISES (ValueError): EL030 if there is no file, EL032 if it is not JSON; else as
        `config_from_options`.
    """
    CheckpointFiles(path).require()
    try:
        options = srsly.read_json(path)
    except ValueError as err:
        raise ValueError(Errors.EL032.format(path=path, error=err)) from err
    return config_from_options(options, str(path), len(_read_table_words(path.parent)))


def _read_table_words(folder: Path) -> List[str]:
    """The words of a model that reads no characters; none without a usable vocabulary."""
    path = folder / VOCAB_FILE
    words = read_words(path) if path.exists() else []
    # Without a row for unknown words bilm-tf drops them, and misaligns the sentence.
    return words[len(_SPECIAL) :] if tuple(words[: len(_SPECIAL)]) == _SPECIAL else []


def read_allennlp_config(files: CheckpointFiles) -> BiLMConfig:
    """Read the shape of a pair of files, as `read_options`."""
    options_path, weights_path = find_pair(files)
    config = read_options(options_path)
    # AllenNLP's own trainer projects even where the width stays the same: the options
    # do not tell, the weights do.
    if not config.projection and PROJECTION in _read_datasets(weights_path):
        return replace(config, projection=True)
    return config


def read_allennlp_state(files: CheckpointFiles, config: BiLMConfig) -> StateDict:
    """Read the weights.

    files (CheckpointFiles): the pair, or its folder.
    config (BiLMConfig): the shape of the pair.
    RETURNS (StateDict): weights, float32.
    RAISES (ValueError): EL038 without h5py, EL033 if the file cannot be read, EL020
        for missing or unexpected datasets, EL021 and EL022 for their shapes and types.
    """
    options_path, path = find_pair(files)
    arrays = _read_datasets(path)
    expected = dict(list_datasets(config))
    _fill_optional(arrays, config)
    missing = sorted(set(expected) - set(arrays))
    unexpected = sorted(set(arrays) - set(expected))
    if missing or unexpected:
        raise ValueError(
            Errors.EL020.format(
                source=path,
                missing=", ".join(missing) or "none",
                unexpected=", ".join(unexpected) or "none",
            )
        )
    for name, dataset in expected.items():
        array = arrays[name]
        if array.shape != dataset.shape:
            raise ValueError(
                Errors.EL021.format(
                    source=path, name=name, found=array.shape, expected=dataset.shape
                )
            )
        if array.dtype.kind != "f":
            raise ValueError(Errors.EL022.format(source=path, name=name, found=array.dtype))
    state = to_state(config, arrays)
    if config.input == "words":
        words = _read_table_words(options_path.parent)
        state.update(_read_table(config, words, state.pop(EMBEDDING)))
    return {**no_initial_state(config), **state}


def _read_table(config: BiLMConfig, words: List[str], embedding: Tensor) -> StateDict:
    """The weights of a word table from rows in the order of the vocabulary."""
    table = WordTable(config)
    n_special = len(_SPECIAL)
    table.fill(words, embedding[n_special:])
    state = {**table.state_dict(), "special": embedding[:n_special]}
    return {f"word_table.{name}": tensor for name, tensor in state.items()}


def _read_datasets(path: Path) -> Dict[str, NDArray]:
    """All datasets by their names; those of a one-layer model get a layer's name."""
    if h5py is None:
        raise ValueError(Errors.EL038.format(path=path))
    arrays: Dict[str, NDArray] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            # A model of one layer is dumped without the wrapper of several.
            name = name.replace("/RNN/LSTMCell/", "/RNN/MultiRNNCell/Cell0/LSTMCell/")
            arrays[name] = item[...]

    try:
        with h5py.File(path, "r") as file_:
            file_.visititems(visit)
    except (OSError, RuntimeError) as err:
        raise ValueError(Errors.EL033.format(path=path, error=err)) from err
    return arrays


def _fill_optional(arrays: Dict[str, NDArray], config: BiLMConfig) -> None:
    """bilm-tf leaves the projection of words out where it would keep the width; a
    product with the identity is exact."""
    n_filters = config.n_filters
    if config.input != "characters":
        return
    if n_filters == config.direction_width and "CNN_proj/W_proj" not in arrays:
        arrays["CNN_proj/W_proj"] = np.eye(n_filters, dtype="float32")
        arrays["CNN_proj/b_proj"] = np.zeros(n_filters, dtype="float32")


def read_allennlp_softmax(files: CheckpointFiles) -> Optional[SoftmaxWeights]:
    """Read the softmax beside the weights: a file *softmax*.hdf5, with vocab.txt.

    files (CheckpointFiles): the folder; a pair of files has no softmax.
    RETURNS (Optional[SoftmaxWeights]): weights, float32; None if there are none.
    RAISES (ValueError): EL033 if a file cannot be read, EL020 for missing datasets, EL021
        if they do not fit the vocabulary.
    """
    found = sorted(p for p in files.path.glob("*.hdf5") if _is_softmax(p))
    vocab = files.path / VOCAB_FILE
    if files.weights_path is not None or not found or not vocab.exists():
        return None
    arrays, words = _read_datasets(found[0]), read_words(vocab)
    missing = sorted({"softmax/W", "softmax/b"} - set(arrays))
    if missing:
        raise ValueError(
            Errors.EL020.format(source=found[0], missing=", ".join(missing), unexpected="none")
        )
    weight, bias = (arrays[name].astype("float32") for name in ("softmax/W", "softmax/b"))
    width = read_allennlp_config(files).direction_width
    for name, array, shape in (("W", weight, (len(words), width)), ("b", bias, (len(words),))):
        if array.shape != shape:
            raise ValueError(
                Errors.EL021.format(
                    source=found[0], name=f"softmax/{name}", found=array.shape, expected=shape
                )
            )
    state = {"weight": torch.from_numpy(weight), "bias": torch.from_numpy(bias)}
    return SoftmaxWeights("full", {}, state, words)


allennlp_reader = CheckpointReader(
    matches_allennlp, read_allennlp_config, read_allennlp_state, read_allennlp_softmax
)
