"""AllenNLP / bilm-tf: options.json and an HDF5 file of weights.

Names and arithmetic: bilm-tf `model.py` and `training.py`, AllenNLP `elmo.py` and
`elmo_lstm.py`. Four conventions differ from ours and are commented where they are met.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, NamedTuple, Tuple

import numpy as np
import srsly
import torch
from numpy.typing import NDArray

from ..bilm.config import BiLMConfig
from ..characters import N_CHARACTERS
from ..errors import Errors
from .files import CheckpointFiles
from .reader import CheckpointReader, StateDict

try:
    import h5py
except ImportError:  # the extra "allennlp"
    h5py = None

OPTIONS_FILE = "options.json"
_PROJECTION = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_P_0"


class Dataset(NamedTuple):
    """One dataset of the file.

    shape (Tuple[int, ...]): its shape.
    name (str): the weight of ours that it becomes; "" if several make one.
    convert (Callable[[NDArray], NDArray]): the file's layout -> ours.
    """

    shape: Tuple[int, ...]
    name: str
    convert: Callable[[NDArray], NDArray]


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


def config_from_options(options: Dict[str, Any], source: str) -> BiLMConfig:
    """Read a shape from options, tolerant of all that bilm-tf accepts.

    options (Dict[str, Any]): the content of options.json.
    source (str): the file, for messages.
    RETURNS (BiLMConfig): the shape.
    RAISES (ValueError): EL036 for a missing or impossible option, EL037 for a model
        without characters, EL010 for a value out of range.
    """
    if "char_cnn" not in options:
        raise ValueError(Errors.EL037.format(source=source))
    try:
        lstm, char_cnn = options["lstm"], options["char_cnn"]
        width, cell_width = lstm["projection_dim"], lstm["dim"]
        char_width, filters = char_cnn["embedding"]["dim"], char_cnn["filters"]
        max_chars = char_cnn["max_characters_per_token"]
    except (KeyError, TypeError) as err:
        raise ValueError(Errors.EL036.format(source=source, problem=f"no {err}")) from err
    _check_options(options, source)
    return BiLMConfig(
        width=2 * width,
        depth=lstm.get("n_layers", 1),
        cell_width=cell_width,
        char_width=char_width,
        filters=filters,
        n_highway=char_cnn.get("n_highway") or 0,
        max_chars=max_chars,
        # bilm-tf leaves a clip out with null, AllenNLP with 0 too.
        cell_clip=lstm.get("cell_clip") or None,
        proj_clip=lstm.get("proj_clip") or None,
        # bilm-tf builds a plain LSTM cell where there is nothing to project down to.
        projection=cell_width > width,
        skip_connections=bool(lstm.get("use_skip_connections", False)),
        activation=char_cnn.get("activation", "relu"),
    )


def _check_options(options: Dict[str, Any], source: str) -> None:
    lstm, char_cnn = options["lstm"], options["char_cnn"]
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
    return config_from_options(options, str(path))


def read_allennlp_config(files: CheckpointFiles) -> BiLMConfig:
    """Read the shape of a pair of files, as `read_options`."""
    options_path, weights_path = find_pair(files)
    config = read_options(options_path)
    # AllenNLP's own trainer projects even where the width stays the same: the options
    # do not tell, the weights do.
    if not config.projection and _PROJECTION in _read_datasets(weights_path):
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
    path = find_pair(files)[1]
    arrays = _read_datasets(path)
    expected = dict(_datasets(config))
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
    state: Dict[str, NDArray] = {}
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
        converted = dataset.convert(array.astype("float32"))
        # Two datasets of one name are the halves of one weight, in this order.
        parts = [state[dataset.name], converted] if dataset.name in state else [converted]
        state[dataset.name] = np.concatenate(parts)
    return {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in state.items()}


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
    if n_filters == config.direction_width and "CNN_proj/W_proj" not in arrays:
        arrays["CNN_proj/W_proj"] = np.eye(n_filters, dtype="float32")
        arrays["CNN_proj/b_proj"] = np.zeros(n_filters, dtype="float32")


def _datasets(config: BiLMConfig) -> Iterator[Tuple[str, Dataset]]:
    """The table of names: dataset -> shape, weight of ours, conversion."""
    n_filters, width = config.n_filters, config.direction_width
    # Readers prepend a row of zeros for "no token"; we have no such row.
    yield (
        "char_embed",
        Dataset((N_CHARACTERS, config.char_width), "char_cnn.embedding.weight", _keep),
    )
    for i, (filter_width, number) in enumerate(config.filters):
        ours = f"char_cnn.convolutions.{i}"
        shape = (1, filter_width, config.char_width, number)
        yield f"CNN/W_cnn_{i}", Dataset(shape, f"{ours}.weight", _convolution)
        yield f"CNN/b_cnn_{i}", Dataset((number,), f"{ours}.bias", _keep)
    for k in range(config.n_highway):
        ours = f"char_cnn.highways.{k}.linear"
        for part in ("transform", "carry"):
            square = (n_filters, n_filters)
            yield f"CNN_high_{k}/W_{part}", Dataset(square, f"{ours}.weight", _transpose)
            yield f"CNN_high_{k}/b_{part}", Dataset((n_filters,), f"{ours}.bias", _keep)
    ours = "char_cnn.projection"
    yield "CNN_proj/W_proj", Dataset((n_filters, width), f"{ours}.weight", _transpose)
    yield "CNN_proj/b_proj", Dataset((width,), f"{ours}.bias", _keep)
    for d, direction in enumerate(("forward", "backward")):
        for layer in range(config.depth):
            theirs = f"RNN_{d}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            yield from _cell(theirs, f"{direction}_lstm.layers.{layer}", config)


def _cell(theirs: str, ours: str, config: BiLMConfig) -> Iterator[Tuple[str, Dataset]]:
    width, cell_width = config.direction_width, config.cell_width
    # One matrix for input (upper rows) and recurrence (lower rows).
    yield f"{theirs}/W_0", Dataset((2 * width, 4 * cell_width), f"{ours}.weight", _order_gates)
    yield f"{theirs}/B", Dataset((4 * cell_width,), f"{ours}.bias", _bias)
    if config.projection:
        yield f"{theirs}/W_P_0", Dataset((cell_width, width), f"{ours}.projection", _keep)


def _keep(array: NDArray) -> NDArray:
    return array


def _transpose(array: NDArray) -> NDArray:
    return array.T


def _convolution(array: NDArray) -> NDArray:
    # TF: (1, width, in, out); torch: (out, in, width).
    return array[0].transpose(2, 1, 0)


def _order_gates(array: NDArray) -> NDArray:
    # TF stores the gates as i, j, f, o; ours are i, f, o, j.
    i, j, f, o = np.split(array, 4, axis=-1)
    return np.concatenate([i, f, o, j], axis=-1)


def _bias(array: NDArray) -> NDArray:
    # TF adds 1 to the forget gate when it runs; the +1 is not in the file.
    i, f, o, j = np.split(_order_gates(array), 4)
    return np.concatenate([i, f + 1.0, o, j])


allennlp_reader = CheckpointReader(matches_allennlp, read_allennlp_config, read_allennlp_state)
