"""Every legal option, held against a second forward pass in plain NumPy."""

import itertools
import json

import h5py
import numpy as np
import pytest

from spacy_elmo import load_embedder
from spacy_elmo.checkpoints import allennlp

from ..support import oracle
from ..support.helpers import assert_close, silently
from ..support.toy import make_options, make_weights, write_datasets, write_model

SENTENCES = [
    ["I", "like", "green", "eggs", "and", "ham", "."],
    ["Eat"],
    ["<S>", "</S>", "", "\0", "😀", "e\u0301", "a\ud800b", "xxxxxxxxxx"],
    ["a", "b"],
]

# F is 12, P is 4, D is 6 by default.
OPTIONS = {
    "default": {},
    "no skip connections": {"use_skip_connections": False},
    "skip connections missing": {"use_skip_connections": ...},
    "no clips": {"cell_clip": None, "proj_clip": None},
    "clips missing": {"cell_clip": ..., "proj_clip": ...},
    "clips zero": {"cell_clip": 0, "proj_clip": 0},
    "clips that bite": {"cell_clip": 0.2, "proj_clip": 0.1},
    "cell clip alone": {"cell_clip": 0.2, "proj_clip": None},
    "projection clip alone": {"cell_clip": None, "proj_clip": 0.1},
    "no projection": {"dim": 4},
    "no projection, clip that would bite": {"dim": 4, "proj_clip": 0.1},
    "no highway": {"n_highway": 0},
    "highway missing": {"n_highway": ...},
    "no projection of words": {"projection_dim": 12, "dim": 14},
    "one layer": {"n_layers": 1},
    "layers missing": {"n_layers": ...},
    "three layers": {"n_layers": 3},
    "tanh": {"activation": "tanh"},
    "261 characters": {"n_characters": 261},
    "characters missing": {"n_characters": ...},
    "few characters": {"max_characters_per_token": 3},
    "many characters": {"max_characters_per_token": 70},
    "wide filter": {"filters": [[7, 5], [1, 2]]},
}


def check(tmp_path, options, weights, dtype="float32", atol=1e-5):
    embedder = load_embedder(*write_model(tmp_path, options, weights, dtype))
    expected = [oracle.embed(options, weights, words)[0] for words in SENTENCES]
    assert_close(silently(embedder.embed, SENTENCES), expected, atol)
    return embedder


@pytest.mark.parametrize("changes", OPTIONS.values(), ids=OPTIONS)
def test_embed_equals_the_oracle(tmp_path, changes):
    options = make_options(**changes)
    check(tmp_path, options, make_weights(options))


COMBINED = list(
    itertools.product([True, False], [None, 0.3], [None, 0.2], [4, 6], [0, 2], [1, 2], [4, 12])
)


@pytest.mark.parametrize("skip, cell_clip, proj_clip, extra, n_highway, n_layers, width", COMBINED)
def test_embed_equals_the_oracle_for_combined_options(
    tmp_path, skip, cell_clip, proj_clip, extra, n_highway, n_layers, width
):
    options = make_options(
        use_skip_connections=skip,
        cell_clip=cell_clip,
        proj_clip=proj_clip,
        dim=width + extra - 4,
        n_highway=n_highway,
        n_layers=n_layers,
        projection_dim=width,
    )
    check(tmp_path, options, make_weights(options, seed=n_layers))


def test_embed_stateful_equals_the_oracle(tmp_path):
    options = make_options(cell_clip=0.5, proj_clip=0.4)
    weights = make_weights(options)
    embedder = load_embedder(*write_model(tmp_path, options, weights))

    state, states = None, [None] * 4
    for batch in (SENTENCES, SENTENCES[::-1], SENTENCES):
        arrays, state = embedder.embed_stateful(batch, state)
        for row, words in enumerate(batch):
            expected, states[row] = oracle.embed(options, weights, words, states[row])
            assert_close([arrays[row]], [expected])


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_floats_are_cast(tmp_path, dtype):
    options = make_options()
    weights = {name: a.astype(dtype) for name, a in make_weights(options).items()}

    embedder = check(tmp_path, options, weights, dtype)

    assert {str(w.dtype) for w in embedder.bilm.parameters()} == {"torch.float32"}


def test_projections_that_allennlp_adds_are_read(tmp_path):
    """Its own trainer projects even where bilm-tf would not."""
    options = make_options(projection_dim=12, dim=12, proj_clip=0.3)
    check(tmp_path, options, make_weights(options, project=True, word_projection=True))


def test_a_folder_is_enough(toy_folder):
    write_datasets(toy_folder / "softmax_weights.hdf5", {"softmax/W": np.zeros((3, 4))})
    pair = load_embedder(toy_folder / "options.json", toy_folder / "weights.hdf5")

    assert_close(load_embedder(toy_folder).embed(SENTENCES), pair.embed(SENTENCES))


def edit(folder, change):
    """Rewrite the weights with a change to their dict."""
    path = folder / "weights.hdf5"
    with h5py.File(path) as file_:
        names = []
        file_.visititems(lambda n, d: names.append(n) if hasattr(d, "shape") else None)
        weights = {name: file_[name][...] for name in names}
    change(weights)
    path.unlink()
    with h5py.File(path, "w") as file_:
        for name, array in weights.items():
            file_[name] = array


CELL = "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/"
BAD_WEIGHTS = {
    "missing": (lambda w: w.pop(CELL + "B"), f"EL020.*Missing: {CELL}B"),
    "unexpected": (lambda w: w.update(more=np.zeros(3)), "EL020.*Unexpected: more"),
    "no word projection": (lambda w: w.pop("CNN_proj/W_proj"), "EL020.*CNN_proj/W_proj"),
    "shape": (
        lambda w: w.update({CELL + "W_0": np.zeros((8, 20), "float32")}),
        rf"EL021.*{CELL}W_0.*\(8, 20\).*\(8, 24\)",
    ),
    "characters": (
        lambda w: w.update(char_embed=np.zeros((300, 3), "float32")),
        r"EL021.*char_embed.*\(300, 3\).*\(261, 3\)",
    ),
    "integers": (
        lambda w: w.update({CELL + "B": np.zeros(24, "int64")}),
        f"EL022.*{CELL}B.*int64",
    ),
    "text": (lambda w: w.update({CELL + "B": "x"}), f"EL021.*{CELL}B"),
}


@pytest.mark.parametrize("change, match", BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_bad_weights_are_refused_by_name(toy_folder, change, match):
    edit(toy_folder, change)

    with pytest.raises(ValueError, match=match):
        load_embedder(toy_folder)


@pytest.mark.parametrize("size", [0, 100, 3000])
def test_a_truncated_file_is_refused(toy_folder, size):
    path = toy_folder / "weights.hdf5"
    path.write_bytes(path.read_bytes()[:size])

    with pytest.raises(ValueError, match=r"EL033.*weights\.hdf5"):
        load_embedder(toy_folder)


def test_another_format_is_refused(toy_folder):
    (toy_folder / "weights.hdf5").write_text("no HDF5")

    with pytest.raises(ValueError, match="EL033"):
        load_embedder(toy_folder)


def without(part, key):
    return lambda options: options[part].pop(key)


def with_(part, **values):
    return lambda options: options[part].update(values)


BAD_OPTIONS = {
    "word ids": (lambda o: o.pop("char_cnn"), "EL037"),
    "no lstm": (lambda o: o.pop("lstm"), "EL036.*no 'lstm'"),
    "no width": (without("lstm", "projection_dim"), "EL036.*no 'projection_dim'"),
    "no filters": (without("char_cnn", "filters"), "EL036.*no 'filters'"),
    "characters": (with_("char_cnn", n_characters=50), "EL036.*n_characters is 50"),
    "wide projection": (with_("lstm", dim=3), "EL036.*dim 3 is below projection_dim 4"),
    "one direction": (lambda o: o.update(bidirectional=False), "EL036.*bidirectional"),
    "activation": (with_("char_cnn", activation="elu"), "EL010.*activation = elu"),
}


@pytest.mark.parametrize("change, match", BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_bad_options_are_refused(toy_folder, change, match):
    options = make_options()
    change(options)
    (toy_folder / "options.json").write_text(json.dumps(options))

    with pytest.raises(ValueError, match=match):
        load_embedder(toy_folder)


def test_options_that_are_no_json_are_refused(toy_folder):
    (toy_folder / "options.json").write_text("{")

    with pytest.raises(ValueError, match=r"EL032.*options\.json"):
        load_embedder(toy_folder)


def test_a_missing_path_is_named(tmp_path, toy_folder):
    with pytest.raises(ValueError, match="EL030.*nowhere"):
        load_embedder(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"EL030.*none\.hdf5"):
        load_embedder(toy_folder / "options.json", toy_folder / "none.hdf5")
    with pytest.raises(ValueError, match=r"EL030.*none\.json"):
        allennlp.read_options(toy_folder / "none.json")


def test_an_unknown_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match="EL031"):
        load_embedder(tmp_path)


def test_several_files_of_weights_are_refused(toy_folder):
    write_datasets(toy_folder / "more.hdf5", {"a": np.zeros(1)})

    with pytest.raises(ValueError, match=r"EL035.*more\.hdf5, weights\.hdf5"):
        load_embedder(toy_folder)


def test_a_model_that_reads_characters_needs_no_words(toy_folder):
    expected = load_embedder(toy_folder).embed([["green", "eggs"]])
    (toy_folder / "vocab.txt").write_bytes(b"\xff\xfe")
    found = load_embedder(toy_folder).embed([["green", "eggs"]])
    assert_close(found[0], expected[0])


def test_h5py_is_asked_for_by_name(toy_folder, monkeypatch):
    monkeypatch.setattr(allennlp, "h5py", None)

    with pytest.raises(ValueError, match=r"EL038.*spacy-elmo\[allennlp\]"):
        load_embedder(toy_folder)
