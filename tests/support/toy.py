"""Toy models in the AllenNLP layout, of any shape, with random weights."""

import json

import h5py
import numpy as np


def make_options(**changes):
    """Options of a tiny model; a key of "lstm" or "char_cnn" set to ... is left out."""
    lstm = {
        "use_skip_connections": True,
        "projection_dim": 4,
        "cell_clip": 3,
        "proj_clip": 3,
        "dim": 6,
        "n_layers": 2,
    }
    char_cnn = {
        "activation": "relu",
        "filters": [[1, 3], [2, 4], [3, 5]],
        "n_highway": 2,
        "embedding": {"dim": 3},
        "n_characters": 262,
        "max_characters_per_token": 12,
    }
    for key, value in changes.items():
        part = lstm if key in lstm else char_cnn
        assert key in part, key
        if value is ...:
            del part[key]
        else:
            part[key] = value
    return {"lstm": lstm, "char_cnn": char_cnn}


def make_weights(options, *, seed=0, scale=0.5, project=None, word_projection=None):
    """Random datasets as bilm-tf writes them. `project` and `word_projection` force
    the two projections that it leaves out where they would keep the width."""
    rng = np.random.default_rng(seed)
    lstm, char_cnn = options["lstm"], options["char_cnn"]
    C = char_cnn["embedding"]["dim"]
    F = sum(n for _, n in char_cnn["filters"])
    P, D, depth = lstm["projection_dim"], lstm["dim"], lstm.get("n_layers", 1)
    shapes = {"char_embed": (261, C)}
    for i, (width, n) in enumerate(char_cnn["filters"]):
        shapes[f"CNN/W_cnn_{i}"] = (1, width, C, n)
        shapes[f"CNN/b_cnn_{i}"] = (n,)
    for k in range(char_cnn.get("n_highway") or 0):
        for part in ("transform", "carry"):
            shapes[f"CNN_high_{k}/W_{part}"] = (F, F)
            shapes[f"CNN_high_{k}/b_{part}"] = (F,)
    if F != P if word_projection is None else word_projection:
        shapes["CNN_proj/W_proj"] = (F, P)
        shapes["CNN_proj/b_proj"] = (P,)
    for d in (0, 1):
        for layer in range(depth):
            wrapper = "" if depth == 1 else f"MultiRNNCell/Cell{layer}/"
            cell = f"RNN_{d}/RNN/{wrapper}LSTMCell/"
            shapes[cell + "W_0"] = (2 * P, 4 * D)
            shapes[cell + "B"] = (4 * D,)
            if D > P if project is None else project:
                shapes[cell + "W_P_0"] = (D, P)
    return {
        name: (scale * rng.standard_normal(shape)).astype("float32")
        for name, shape in shapes.items()
    }


def write_model(folder, options, weights, dtype="float32"):
    """Write the two files. Returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    options_path, weights_path = folder / "options.json", folder / "weights.hdf5"
    options_path.write_text(json.dumps(options))
    write_datasets(weights_path, weights, dtype)
    return options_path, weights_path


def write_datasets(path, weights, dtype="float32"):
    with h5py.File(path, "w") as file_:
        for name, array in weights.items():
            file_.create_dataset(name, data=np.asarray(array, dtype=dtype))
