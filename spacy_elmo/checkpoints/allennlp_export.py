"""Write the AllenNLP / bilm-tf layout, for any reader of ELMo weights."""

from io import BytesIO
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

import numpy as np
import srsly
import torch
from numpy.typing import NDArray

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.weights import check_numbers
from ..errors import Errors
from .allennlp import OPTIONS_FILE, SOFTMAX_BIAS, SOFTMAX_WEIGHT, VOCAB_FILE, h5py
from .allennlp_layout import to_arrays
from .formats import SoftmaxWeights, write_words
from .hdf5_numbers import DIGEST, make_digest
from .writing import checkpoint_folder

WEIGHTS_FILE = "weights.hdf5"
SOFTMAX_FILE = "softmax_weights.hdf5"
# What readers expect: the trainer's 261 characters and a row for no token.
_N_CHARACTERS = 262


def write_allennlp(bilm: BiLM, folder: Path, softmax: Optional[SoftmaxWeights] = None) -> None:
    """Write options.json and weights.hdf5, and with a softmax softmax_weights.hdf5 and
    vocab.txt. The write is atomic.

    bilm (BiLM): what to write; it must read characters.
    folder (Path): where; must not exist.
    softmax (Optional[SoftmaxWeights]): "full" or "sampled".
    RAISES (ValueError): EL034 if the folder exists, EL038 without h5py, EL039 if the
        format has no place for the biLM, EL076 for another softmax, EL106 for weights that
        are no numbers, EL113 if the folder cannot be written.
    """
    if h5py is None:
        raise ValueError(Errors.EL038.format(path=folder))
    if bilm.config.input != "characters":
        raise ValueError(Errors.EL039.format(found=f"this one reads {bilm.config.input}"))
    if bilm.config.cell_width < bilm.config.direction_width:
        n_cells, width = bilm.config.cell_width, bilm.config.direction_width
        found = f"this one has {n_cells} cells for an output of {width}"
        raise ValueError(Errors.EL039.format(found=found))
    if softmax is not None and set(softmax.state) != {"weight", "bias"}:
        raise ValueError(Errors.EL076.format(kind=softmax.kind))
    with checkpoint_folder(folder, is_ours=_never) as temporary:
        srsly.write_json(temporary / OPTIONS_FILE, make_options(bilm.config))
        _write(temporary / WEIGHTS_FILE, to_arrays(bilm.config, bilm.state_dict()))
        if softmax is not None:
            weight, bias = (_to_array(softmax.state[name]) for name in ("weight", "bias"))
            _write(temporary / SOFTMAX_FILE, {SOFTMAX_WEIGHT: weight, SOFTMAX_BIAS: bias})
            write_words(temporary / VOCAB_FILE, softmax.words)


def make_options(config: BiLMConfig) -> Dict[str, Any]:
    """config (BiLMConfig): a shape that reads characters. RETURNS (Dict[str, Any]): the
    content of options.json."""
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


def _to_array(tensor: torch.Tensor) -> NDArray:
    return tensor.detach().cpu().float().numpy()


def _write(path: Path, arrays: Mapping[str, NDArray]) -> None:
    # Into memory first: a disk that is full is then an error of the system's, not of HDF5.
    content = BytesIO()
    with h5py.File(content, "w") as file:
        for name, array in arrays.items():
            check_numbers(name, torch.from_numpy(array), "the model to write")
            dataset = file.create_dataset(name, data=array)
            dataset.attrs[DIGEST] = np.bytes_(make_digest(array))
    with path.open("wb") as target:
        target.write(content.getbuffer())


def _never(path: Path) -> bool:
    return False
