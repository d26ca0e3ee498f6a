"""What the bundled biLM says of some sentences, by the NumPy oracle alone: its files are read
with safetensors and json, nothing of the package takes part.

After the bundled weights were replaced, `python -m tests.support.golden` makes the fixture anew.
"""

import hashlib
import json

import numpy as np
import safetensors.numpy

from . import oracle
from .helpers import DATA, ROOT

WEIGHTS = ROOT / "spacy_elmo" / "data" / "en_small"
FIXTURE = DATA / "en_small_golden.npz"
SENTENCES = [
    ["He", "sat", "by", "the", "bank", "of", "the", "river", "."],
    ["Zoë", "’s", "naïve", "😀", "xqzzk", "<S>"],
    ["Yes"],
]


def hash_file(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_oracle_model(folder):
    """RETURNS options and weights as the oracle wants them (those of bilm-tf)."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    arrays = safetensors.numpy.load_file(folder / "model.safetensors")
    arrays = {name: array.astype("float64") for name, array in arrays.items()}
    lstm = {
        "use_skip_connections": config["skip_connections"],
        "projection_dim": config["width"] // 2,
        "cell_clip": config["cell_clip"],
        "proj_clip": config["proj_clip"],
        "dim": config["cell_width"],
        "n_layers": config["depth"],
    }
    char_cnn = {
        "activation": config["activation"],
        "filters": config["filters"],
        "n_highway": config["n_highway"],
        "max_characters_per_token": config["max_chars"],
    }
    weights = {**_convert_cnn(arrays, config), **_convert_lstm(arrays, config)}
    return {"lstm": lstm, "char_cnn": char_cnn}, weights


def _convert_cnn(arrays, config):
    weights = {"char_embed": arrays["char_cnn.embedding.weight"]}
    for i in range(len(config["filters"])):
        # (out, in, width) -> (1, width, in, out)
        conv = arrays[f"char_cnn.convolutions.{i}.weight"]
        weights[f"CNN/W_cnn_{i}"] = conv.transpose(2, 1, 0)[None]
        weights[f"CNN/b_cnn_{i}"] = arrays[f"char_cnn.convolutions.{i}.bias"]
    for k in range(config["n_highway"]):
        linear = f"char_cnn.highways.{k}.linear."
        for kind in ("weight", "bias"):
            transform, gate = np.split(arrays[linear + kind], 2)
            letter = "W" if kind == "weight" else "b"
            weights[f"CNN_high_{k}/{letter}_transform"] = transform.T
            weights[f"CNN_high_{k}/{letter}_carry"] = gate.T
    weights["CNN_proj/W_proj"] = arrays["char_cnn.projection.weight"].T
    weights["CNN_proj/b_proj"] = arrays["char_cnn.projection.bias"]
    return weights


def _convert_lstm(arrays, config):
    weights = {}
    for d, direction in enumerate(("forward", "backward")):
        for layer in range(config["depth"]):
            ours = f"{direction}_lstm.layers.{layer}."
            theirs = oracle.LAYERS.format(d=d, layer=layer) + "/"
            # i, f, o, j -> i, j, f, o; the forget gate's +1 is in the bias of ours.
            i, f, o, j = np.split(arrays[ours + "bias"], 4)
            weights[theirs + "B"] = np.concatenate([i, j, f - 1.0, o])
            i, f, o, j = np.split(arrays[ours + "weight"], 4, axis=1)
            weights[theirs + "W_0"] = np.concatenate([i, j, f, o], axis=1)
            if config["projection"]:
                weights[theirs + "W_P_0"] = arrays[ours + "projection"]
    return weights


def make_fixture(folder=WEIGHTS, path=FIXTURE):
    """Write the layers of the sentences, (n_layers, n_tokens, width) each."""
    options, weights = read_oracle_model(folder)
    arrays = {
        f"zero_{i}": oracle.embed(options, weights, words)[0].astype("float32")
        for i, words in enumerate(SENTENCES)
    }
    path.parent.mkdir(exist_ok=True)
    np.savez_compressed(path, weights=hash_file(folder / "model.safetensors"), **arrays)


if __name__ == "__main__":
    make_fixture()
