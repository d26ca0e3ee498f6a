"""The layout of AllenNLP / bilm-tf HDF5 files: one table of names, read both ways.

Names and arithmetic: bilm-tf `model.py` and `training.py`, AllenNLP `elmo_lstm.py`. Four
conventions differ from ours and are commented where they are met.
"""

from typing import Callable, Dict, Iterator, List, NamedTuple, Tuple

import numpy as np
import torch
from numpy.typing import NDArray

from ..bilm.batch import N_CHARACTERS
from ..bilm.config import BiLMConfig
from ..bilm.weights import N_SPECIAL_WORDS
from .tensors import StateDict

# Rows of a model that reads words, in the order of its vocabulary.
EMBEDDING = "embedding"


class Layout(NamedTuple):
    """How an array is stored.

    to_ours (Callable[[NDArray], NDArray]): the file's array -> ours.
    to_theirs (Callable[[NDArray], NDArray]): back.
    """

    to_ours: Callable[[NDArray], NDArray]
    to_theirs: Callable[[NDArray], NDArray]


class Dataset(NamedTuple):
    """One dataset of the file.

    shape (Tuple[int, ...]): its shape.
    name (str): the weight of ours that it becomes.
    layout (Layout): how it is stored.
    part (int): which half of our weight it is; -1 if all.
    """

    shape: Tuple[int, ...]
    name: str
    layout: Layout
    part: int = -1


def _keep(array: NDArray) -> NDArray:
    return array


def _order_gates(array: NDArray) -> NDArray:
    # TF stores the gates as i, j, f, o; ours are i, f, o, j.
    i, j, f, o = np.split(array, 4, axis=-1)
    return np.concatenate([i, f, o, j], axis=-1)


def _restore_gates(array: NDArray) -> NDArray:
    i, f, o, j = np.split(array, 4, axis=-1)
    return np.concatenate([i, j, f, o], axis=-1)


def _shift_forget(by: float) -> Callable[[NDArray], NDArray]:
    # TF adds 1 to the forget gate when it runs; the +1 is not in the file.
    def shift(array: NDArray) -> NDArray:
        i, f, o, j = np.split(array, 4)
        return np.concatenate([i, f + np.float32(by), o, j])

    return shift


_SAME = Layout(_keep, _keep)
_TRANSPOSED = Layout(np.transpose, np.transpose)
# TF: (1, width, in, out); torch: (out, in, width).
_CONVOLUTION = Layout(lambda a: a[0].transpose(2, 1, 0), lambda a: a.transpose(2, 1, 0)[None])
_GATES = Layout(_order_gates, _restore_gates)
_BIAS = Layout(
    lambda a: _shift_forget(1.0)(_order_gates(a)), lambda a: _restore_gates(_shift_forget(-1.0)(a))
)


def _cell_name(direction: int, layer: int) -> str:
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"


PROJECTION = f"{_cell_name(0, 0)}/W_P_0"
# bilm-tf leaves it out where it would keep the width.
WORD_PROJECTION = ("CNN_proj/W_proj", "CNN_proj/b_proj")


def plan_datasets(config: BiLMConfig) -> Iterator[Tuple[str, Dataset]]:
    """config (BiLMConfig): a shape. YIELDS (Tuple[str, Dataset]): names in the file, and
    what is there. Two parts of one weight follow each other."""
    if config.input == "characters":
        yield from _char_cnn(config)
    else:
        shape = (N_SPECIAL_WORDS + config.n_words, config.direction_width)
        yield EMBEDDING, Dataset(shape, EMBEDDING, _SAME)
    for d, direction in enumerate(("forward", "backward")):
        for layer in range(config.depth):
            yield from _cell(_cell_name(d, layer), f"{direction}_lstm.layers.{layer}", config)


def _char_cnn(config: BiLMConfig) -> Iterator[Tuple[str, Dataset]]:
    n_filters, width = config.n_filters, config.direction_width
    # Readers prepend a row of zeros for "no token"; we have no such row.
    shape: Tuple[int, ...] = (N_CHARACTERS, config.char_width)
    yield "char_embed", Dataset(shape, "char_cnn.embedding.weight", _SAME)
    for i, (filter_width, number) in enumerate(config.filters):
        ours = f"char_cnn.convolutions.{i}"
        shape = (1, filter_width, config.char_width, number)
        yield f"CNN/W_cnn_{i}", Dataset(shape, f"{ours}.weight", _CONVOLUTION)
        yield f"CNN/b_cnn_{i}", Dataset((number,), f"{ours}.bias", _SAME)
    for k in range(config.n_highway):
        ours = f"char_cnn.highways.{k}.linear"
        square = (n_filters, n_filters)
        for part, name in enumerate(("transform", "carry")):
            yield f"CNN_high_{k}/W_{name}", Dataset(square, f"{ours}.weight", _TRANSPOSED, part)
            yield f"CNN_high_{k}/b_{name}", Dataset((n_filters,), f"{ours}.bias", _SAME, part)
    ours = "char_cnn.projection"
    weight, bias = WORD_PROJECTION
    yield weight, Dataset((n_filters, width), f"{ours}.weight", _TRANSPOSED)
    yield bias, Dataset((width,), f"{ours}.bias", _SAME)


def _cell(theirs: str, ours: str, config: BiLMConfig) -> Iterator[Tuple[str, Dataset]]:
    width, cell_width = config.direction_width, config.cell_width
    # One matrix for input (upper rows) and recurrence (lower rows).
    yield f"{theirs}/W_0", Dataset((2 * width, 4 * cell_width), f"{ours}.weight", _GATES)
    yield f"{theirs}/B", Dataset((4 * cell_width,), f"{ours}.bias", _BIAS)
    if config.projection:
        yield f"{theirs}/W_P_0", Dataset((cell_width, width), f"{ours}.projection", _SAME)


def to_state(config: BiLMConfig, read: Callable[[str], NDArray]) -> StateDict:
    """config (BiLMConfig): the shape. read (Callable[[str], NDArray]): gives a dataset in its
    shape, float32. RETURNS (StateDict): our weights, float32."""
    parts: Dict[str, List[NDArray]] = {}
    for name, dataset in plan_datasets(config):
        parts.setdefault(dataset.name, []).append(dataset.layout.to_ours(read(name)))
    return {
        name: torch.from_numpy(np.ascontiguousarray(np.concatenate(halves)))
        for name, halves in parts.items()
    }


def to_arrays(config: BiLMConfig, state: StateDict) -> Dict[str, NDArray]:
    """config (BiLMConfig): the shape. state (StateDict): our weights. RETURNS
    (Dict[str, NDArray]): all datasets, float32. A forget gate's bias outside of 0.5 to 2
    may come back changed by a rounding of 6e-8: the file stores it less 1."""
    arrays: Dict[str, NDArray] = {}
    for name, dataset in plan_datasets(config):
        ours = state[dataset.name].detach().cpu().float().numpy()
        if dataset.part >= 0:
            ours = np.split(ours, 2)[dataset.part]
        arrays[name] = np.ascontiguousarray(dataset.layout.to_theirs(ours))
    return arrays
