"""The layout of AllenNLP / bilm-tf files: options.json, and names and shapes in the HDF5 file.

Sources: bilm-tf `model.py` and `training.py`, AllenNLP `elmo.py` and `elmo_lstm.py`. Four
conventions differ from ours, see the comments.
"""

from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..bilm.batch import N_CHARACTERS
from ..bilm.config import N_SPECIAL_WORDS, BiLMConfig
from ..errors import Errors
from ..utils import show_reason, show_value
from .tensors import StateDict

# Readers expect a character for padding besides the 261 of the trainer.
_N_CHARACTERS = N_CHARACTERS + 1

# Rows of a model that reads words, in the order of its vocabulary.
EMBEDDING = "embedding"


class Layout(NamedTuple):
    """How an array is stored: functions from the file's array to ours, and back."""

    to_ours: Callable[[NDArray], NDArray]
    to_theirs: Callable[[NDArray], NDArray]


class Dataset(NamedTuple):
    """One dataset of the file: its shape, the name of our weight, how it is stored, and which half
    of our weight it is (-1: all of it)."""

    shape: Tuple[int, ...]
    name: str
    layout: Layout
    part: int = -1


def _order_gates(array: NDArray, shift: float = 0.0) -> NDArray:
    # TF stores the gates as i, j, f, o; ours are i, f, o, j.
    i, j, f, o = np.split(array, 4, axis=-1)
    return np.concatenate([i, f + np.float32(shift), o, j], axis=-1)


def _restore_gates(array: NDArray, shift: float = 0.0) -> NDArray:
    i, f, o, j = np.split(array, 4, axis=-1)
    return np.concatenate([i, j, f - np.float32(shift), o], axis=-1)


_SAME = Layout(lambda a: a, lambda a: a)
_TRANSPOSED = Layout(np.transpose, np.transpose)
# TF: (1, width, in, out); torch: (out, in, width).
_CONVOLUTION = Layout(lambda a: a[0].transpose(2, 1, 0), lambda a: a.transpose(2, 1, 0)[None])
_GATES = Layout(_order_gates, _restore_gates)
# TF adds 1 to the forget gate when it runs; the +1 is not in the file.
_BIAS = Layout(lambda a: _order_gates(a, 1.0), lambda a: _restore_gates(a, 1.0))


def _cell_name(direction: int, layer: int) -> str:
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"


PROJECTION = f"{_cell_name(0, 0)}/W_P_0"
# bilm-tf omits it where the width stays the same.
WORD_PROJECTION = ("CNN_proj/W_proj", "CNN_proj/b_proj")


def plan_datasets(config: BiLMConfig) -> Iterator[Tuple[str, Dataset]]:
    """Plan the datasets of a shape, by their names in the file. The two parts of one weight follow
    each other."""
    if config.input == "characters":
        yield from _char_cnn(config)
    else:
        shape = (N_SPECIAL_WORDS + config.n_words, config.direction_width)
        yield EMBEDDING, Dataset(shape, EMBEDDING, _SAME)
    width, cell_width = config.direction_width, config.cell_width
    for d, direction in enumerate(("forward", "backward")):
        for layer in range(config.depth):
            theirs, ours = _cell_name(d, layer), f"{direction}_lstm.layers.{layer}"
            # One matrix for input (upper rows) and recurrence (lower rows).
            yield f"{theirs}/W_0", Dataset((2 * width, 4 * cell_width), f"{ours}.weight", _GATES)
            yield f"{theirs}/B", Dataset((4 * cell_width,), f"{ours}.bias", _BIAS)
            if config.projection:
                yield f"{theirs}/W_P_0", Dataset((cell_width, width), f"{ours}.projection", _SAME)


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


def to_state(config: BiLMConfig, read: Callable[[str], NDArray]) -> StateDict:
    """Convert the datasets of a file, which `read` returns by name as float32, to our weights."""
    parts: Dict[str, List[NDArray]] = {}
    for name, dataset in plan_datasets(config):
        parts.setdefault(dataset.name, []).append(dataset.layout.to_ours(read(name)))
    return {
        name: torch.from_numpy(np.ascontiguousarray(np.concatenate(halves)))
        for name, halves in parts.items()
    }


def to_array(tensor: Tensor) -> NDArray:
    return tensor.detach().cpu().float().numpy()


def to_arrays(config: BiLMConfig, state: StateDict) -> Dict[str, NDArray]:
    """Convert our weights to the datasets of a file, float32. A forget gate's bias outside of 0.5
    to 2 may change by a rounding of 6e-8 when it is read back: the file stores it less 1."""
    arrays: Dict[str, NDArray] = {}
    for name, dataset in plan_datasets(config):
        ours = to_array(state[dataset.name])
        if dataset.part >= 0:
            ours = np.split(ours, 2)[dataset.part]
        arrays[name] = np.ascontiguousarray(dataset.layout.to_theirs(ours))
    return arrays


def config_from_options(options: Dict[str, Any], source: str, n_words: int = 0) -> BiLMConfig:
    """Read a shape from the content of options.json, tolerant of all that bilm-tf accepts.
    `n_words` are those of a model that reads words, without the special ones. RAISES (ValueError):
    EL032 for a missing or impossible option, and for missing words."""
    try:
        if options.get("bidirectional", True) is not True:
            raise ValueError(f"bidirectional is {show_value(options['bidirectional'])}")
        shape = _read_lstm(options["lstm"])
        if "char_cnn" in options:
            words = _read_char_cnn(options["char_cnn"])
        elif n_words:
            words = {"input": "words", "n_words": n_words}
        else:
            raise ValueError(
                "it has no 'char_cnn', so the model reads words: put its vocabulary, with <S>, "
                "</S> and <UNK> in front, beside it as vocab.txt"
            )
        return BiLMConfig(**shape, **words)
    except KeyError as err:
        raise ValueError(Errors.EL032.format(path=source, error=f"it has no {err}")) from err
    except (AttributeError, TypeError, ValueError) as err:
        raise ValueError(Errors.EL032.format(path=source, error=show_reason(err))) from err


def _read_lstm(lstm: Dict[str, Any]) -> Dict[str, Any]:
    width, cell_width = lstm["projection_dim"], lstm["dim"]
    if cell_width < width:
        raise ValueError(f"dim {cell_width} is below projection_dim {width}")
    return {
        "width": 2 * width,
        "depth": lstm.get("n_layers", 1),
        "cell_width": cell_width,
        # AllenNLP takes 0, too, for no clip.
        "cell_clip": lstm.get("cell_clip") or None,
        "proj_clip": lstm.get("proj_clip") or None,
        # bilm-tf builds a plain LSTM cell where both widths are the same.
        "projection": cell_width > width,
        "skip_connections": lstm.get("use_skip_connections", False),
    }


def _read_char_cnn(char_cnn: Dict[str, Any]) -> Dict[str, Any]:
    # 262 in released options, 261 in those of training, where 0 stands for the trainer's default.
    n_characters = char_cnn.get("n_characters") or N_CHARACTERS
    if n_characters not in (N_CHARACTERS, _N_CHARACTERS):
        raise ValueError(f"n_characters is {show_value(n_characters)}, neither 261 nor 262")
    return {
        "char_width": char_cnn["embedding"]["dim"],
        "filters": char_cnn["filters"],
        "n_highway": char_cnn.get("n_highway") or 0,
        "max_chars": char_cnn["max_characters_per_token"],
        "activation": char_cnn.get("activation", "relu"),
    }


def make_options(config: BiLMConfig) -> Dict[str, Any]:
    """Make the content of options.json for a shape that reads characters."""
    return {
        "lstm": {
            "use_skip_connections": config.skip_connections,
            "projection_dim": config.direction_width,
            "cell_clip": config.cell_clip,
            "proj_clip": config.proj_clip,
            "dim": config.cell_width,
            "n_layers": config.depth,
        },
        "char_cnn": {
            "activation": config.activation,
            "filters": [list(f) for f in config.filters],
            "n_highway": config.n_highway,
            "embedding": {"dim": config.char_width},
            "n_characters": _N_CHARACTERS,
            "max_characters_per_token": config.max_chars,
        },
    }
