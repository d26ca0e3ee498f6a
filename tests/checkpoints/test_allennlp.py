"""AllenNLP / bilm-tf weights: read, compared with a forward pass in plain NumPy, and written."""

import json
import shutil

import h5py
import numpy as np
import pytest

from spacy_elmo import load_embedder
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints import allennlp
from spacy_elmo.checkpoints.allennlp import config_from_options, read_options, write_allennlp
from spacy_elmo.checkpoints.allennlp_layout import plan_datasets
from spacy_elmo.checkpoints.formats import CheckpointFiles, find_reader
from spacy_elmo.checkpoints.loaders import read_config

from ..support import oracle
from ..support.helpers import SHAPE, assert_close, silently
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


CELL = "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/"
BIAS, N_BIAS = f"{CELL}B", 24


def replace(path, name, make):
    """Have `make(file, name)` write a dataset anew."""
    with h5py.File(path, "a") as file:
        if name in file:
            del file[name]
        make(file, name)


def data(array):
    return lambda file, name: file.create_dataset(name, data=array)


BAD_WEIGHTS = {
    "missing": (BIAS, lambda f, n: None, f"EL020.*Missing: {BIAS}"),
    "unexpected": ("RNN_0/more", data(np.zeros(3)), "EL020.*Unexpected: RNN_0/more"),
    "no word projection": ("CNN_proj/W_proj", lambda f, n: None, "EL020.*CNN_proj/W_proj"),
    "a group": (BIAS, lambda f, n: f.create_group(n), f"EL020.*Missing.*{BIAS}"),
    "shape": (f"{CELL}W_0", data(np.zeros((8, 20))), r"EL021.*\(8, 20\).*\(8, 24\)"),
    "characters": ("char_embed", data(np.zeros((300, 3))), r"EL021.*\(300, 3\).*\(261, 3\)"),
    "empty": (BIAS, data(h5py.Empty("f4")), rf"EL021.*{BIAS}.*\(\)"),
    "text": (BIAS, data("x"), f"EL021.*{BIAS}"),
    "integers": (BIAS, data(np.zeros(N_BIAS, int)), f"EL021.*{BIAS}.*int64"),
    "complex": (BIAS, data(np.zeros(N_BIAS, "c8")), f"EL021.*{BIAS}.*complex64"),
    "records": (BIAS, data(np.zeros(N_BIAS, [("a", "f4"), ("b", "i2")])), f"EL021.*{BIAS}"),
    "nan": (BIAS, data(np.r_[np.zeros(N_BIAS - 1), np.nan]), rf"EL106.*{BIAS}.*\[23\]"),
    "too large": (BIAS, data(np.r_[np.zeros(N_BIAS - 1), 1e300]), rf"EL106.*{BIAS}.*\[23\]"),
    "unwritten": (BIAS, lambda f, n: f.create_dataset(n, (N_BIAS,), "f4"), "EL103.*never written"),
}


@pytest.mark.parametrize("name, make, match", BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_bad_weights_are_refused_by_name(toy_folder, name, make, match):
    replace(toy_folder / "weights.hdf5", name, make)
    with pytest.raises(ValueError, match=match):
        load_embedder(toy_folder)


def external(file, name, other):
    n_bytes = other.stat().st_size
    file.create_dataset(name, (n_bytes // 4,), "f4", external=[(str(other), 0, n_bytes)])


def virtual(file, name, other):
    layout = h5py.VirtualLayout((N_BIAS,), "float32")
    layout[:] = h5py.VirtualSource(str(other), "x", (N_BIAS,), "float32")
    file.create_virtual_dataset(name, layout)


def link(file, name, other):
    file[name] = h5py.ExternalLink(str(other), "/x")


def soft_link(file, name, other):
    file[name] = h5py.SoftLink("/RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell/B")


@pytest.mark.parametrize("make", [external, virtual, link, soft_link])
def test_numbers_of_other_files_are_refused(toy_folder, tmp_path, make):
    other = tmp_path / "secret"
    other.write_bytes(np.full(N_BIAS, 0.25, "float32").tobytes())
    replace(toy_folder / "weights.hdf5", BIAS, lambda file, name: make(file, name, other))
    for load in (load_embedder, read_config):
        with pytest.raises(ValueError, match=rf"EL103.*weights\.hdf5.*{BIAS}' (is|are)"):
            load(toy_folder)


def test_a_group_that_is_a_link_is_refused(toy_folder, tmp_path):
    shutil.copy(toy_folder / "weights.hdf5", tmp_path / "other.hdf5")
    with h5py.File(toy_folder / "weights.hdf5", "a") as file:
        del file["RNN_0"]
        file["RNN_0"] = h5py.ExternalLink(str(tmp_path / "other.hdf5"), "/RNN_0")
    with pytest.raises(ValueError, match="EL103.*RNN_0.*a link"):
        load_embedder(toy_folder)


@pytest.mark.parametrize("settings", [{}, {"chunks": True, "compression": "gzip"}])
def test_a_small_file_of_a_large_shape_is_refused(tmp_path, settings):
    """Its weights would have 12 GB."""
    options = make_options(projection_dim=8192, dim=10000)
    _, path = write_model(tmp_path, options, {})
    with h5py.File(path, "w") as file:
        for name, dataset in plan_datasets(config_from_options(options, "here")):
            created = file.create_dataset(name, dataset.shape, "float32", **settings)
            if settings:
                created[(0,) * len(dataset.shape)] = 1.0
    with pytest.raises(ValueError, match="EL103.*(never written|bytes of numbers in a file)"):
        load_embedder(tmp_path)


STORED = {
    "gzip and shuffle": {"compression": "gzip", "shuffle": True},
    "chunks": {"chunks": True},
    "big-endian": {"dtype": ">f4"},
    "64 bits, checksum": {"dtype": ">f8", "compression": "gzip", "fletcher32": True},
}


@pytest.mark.parametrize("settings", STORED.values(), ids=STORED)
def test_other_storage_is_read(toy_folder, settings):
    expected = load_embedder(toy_folder).embed(SENTENCES)
    with h5py.File(toy_folder / "weights.hdf5", "w", libver="latest") as file:
        for name, array in make_weights(make_options()).items():
            file.create_dataset(name, data=array, **settings)
    assert_close(load_embedder(toy_folder).embed(SENTENCES), expected, atol=0)


@pytest.mark.parametrize("content", [None, b"", b"no HDF5"])
def test_a_damaged_file_is_refused(toy_folder, content):
    path = toy_folder / "weights.hdf5"
    path.write_bytes(path.read_bytes()[:3000] if content is None else content)
    with pytest.raises(ValueError, match=r"EL103.*weights\.hdf5"):
        load_embedder(toy_folder)


def edited(part=None, **changes):
    options = make_options()
    block = options if part is None else options[part]
    block.update(changes)
    for key in [key for key, value in block.items() if value is ...]:
        del block[key]
    return options


BAD_OPTIONS = {
    "words without words": (edited(char_cnn=...), "no 'char_cnn'.*vocab.txt"),
    "no lstm": (edited(lstm=...), "no 'lstm'"),
    "lstm is null": (edited(lstm=None), "None"),
    "no width": (edited("lstm", projection_dim=...), "no 'projection_dim'"),
    "width as text": (edited("lstm", projection_dim="4", dim="6"), "width = .?44"),
    "depth as float": (edited("lstm", n_layers=2.0), "depth = 2.0"),
    "too deep": (edited("lstm", n_layers=10**6), "depth = 1000000.*from 1 to 100"),
    "wide projection": (edited("lstm", dim=3), "dim 3 is below projection_dim 4"),
    "flag as text": (edited("lstm", use_skip_connections="False"), "skip_connections = .?False"),
    "negative clip": (edited("lstm", cell_clip=-1), "cell_clip = -1"),
    "no filters": (edited("char_cnn", filters=...), "no 'filters'"),
    "filters as text": (edited("char_cnn", filters=[["1", "2"]]), "filters = "),
    "characters": (edited("char_cnn", n_characters=50), "n_characters is 50"),
    "activation": (edited("char_cnn", activation="elu"), "EL010.*activation = elu"),
    "one direction": (edited(bidirectional=False), "bidirectional is false"),
}


@pytest.mark.parametrize("options, match", BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_bad_options_are_refused(toy_folder, options, match):
    (toy_folder / "options.json").write_text(json.dumps(options))
    with pytest.raises(ValueError, match=rf"EL032.*options\.json.*{match}"):
        load_embedder(toy_folder)


def test_null_and_zero_options_of_other_libraries_are_read():
    options = make_options(n_highway=None, n_characters=0, cell_clip=0.0, proj_clip=None)
    config = config_from_options({**options, "dropout": 0.1, "bidirectional": True}, "here")
    assert (config.n_highway, config.cell_clip, config.proj_clip) == (0, None, None)


def test_options_that_are_not_json_are_refused(toy_folder):
    (toy_folder / "options.json").write_text("{")
    with pytest.raises(ValueError, match=r"EL032.*options\.json"):
        load_embedder(toy_folder)


def test_a_missing_path_is_named(tmp_path, toy_folder):
    with pytest.raises(ValueError, match="EL030.*nowhere"):
        load_embedder(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"EL030.*none\.hdf5"):
        load_embedder(toy_folder / "options.json", toy_folder / "none.hdf5")
    with pytest.raises(ValueError, match=r"EL030.*none\.json"):
        read_options(toy_folder / "none.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="EL031"):
        load_embedder(tmp_path / "empty")


def test_several_files_of_weights_are_refused(toy_folder):
    write_datasets(toy_folder / "more.hdf5", {"a": np.zeros(1)})
    with pytest.raises(ValueError, match=r"one \.hdf5 file.*more\.hdf5, weights\.hdf5"):
        load_embedder(toy_folder)


def test_the_missing_package_h5py_is_named(toy_folder, monkeypatch):
    monkeypatch.setattr(allennlp, "h5py", None)
    with pytest.raises(ValueError, match=r"EL038.*h5py.*spacy-elmo\[allennlp\]"):
        load_embedder(toy_folder)


# Models that read words

WORDS = ["<S>", "</S>", "<UNK>", "ham", "eggs", "and"]


@pytest.fixture
def word_folder(tmp_path):
    options = make_options()
    rows = np.random.default_rng(0).standard_normal((len(WORDS), 4)).astype("float32")
    cells = {n: array for n, array in make_weights(options).items() if n.startswith("RNN")}
    del options["char_cnn"]
    write_model(tmp_path / "words", options, {**cells, "embedding": rows})
    (tmp_path / "words" / "vocab.txt").write_text("\n".join(WORDS))
    return tmp_path / "words"


def test_words_are_looked_up_whole(word_folder):
    embedder = load_embedder(word_folder / "options.json", word_folder / "weights.hdf5")
    (layers,) = embedder.embed([["eggs", "and", "spam" * 20]])

    with h5py.File(word_folder / "weights.hdf5") as file:
        expected = file["embedding"][...][[4, 5, 2]]
    np.testing.assert_allclose(layers[0], np.concatenate([expected, expected], axis=1))
    assert embedder.bilm.config.input == "words" and embedder.bilm.config.n_words == 3


@pytest.mark.parametrize(
    "words, match",
    [
        (None, "EL032.*vocab.txt"),
        (WORDS[3:], "EL032.*vocab.txt"),
        ([*WORDS, "more"], r"EL021.*embedding.*\(6, 4\).*\(7, 4\)"),
    ],
)
def test_another_vocabulary_is_refused(word_folder, words, match):
    (word_folder / "vocab.txt").unlink()
    if words:
        (word_folder / "vocab.txt").write_text("\n".join(words))
    with pytest.raises(ValueError, match=match):
        load_embedder(word_folder)


# Exported folders


def test_a_damaged_export_is_noticed(tmp_path):
    folder = tmp_path / "model"
    write_allennlp(BiLM(BiLMConfig(**SHAPE)), folder)
    pair = folder / "options.json", folder / "weights.hdf5"
    assert_close(load_embedder(*pair).embed(SENTENCES), load_embedder(folder).embed(SENTENCES))
    options = json.loads(pair[0].read_text())
    options["lstm"]["use_skip_connections"] = False
    pair[0].write_text(json.dumps(options))
    for arguments in ([folder], pair):
        with pytest.raises(ValueError, match=r"EL104.*options\.json"):
            load_embedder(*arguments)


@pytest.mark.parametrize("make", [external, virtual])
def test_a_softmax_of_another_file_is_refused(toy_folder, tmp_path, make):
    path = toy_folder / "softmax_weights.hdf5"
    write_datasets(path, {"softmax/W": np.ones((24, 4)), "softmax/b": np.ones(24)})
    (toy_folder / "vocab.txt").write_text("\n".join(map(str, range(24))))
    files = CheckpointFiles(toy_folder)
    assert find_reader(files).read_softmax(files).state["weight"].shape == (24, 4)
    (tmp_path / "secret").write_bytes(bytes(4 * 24))
    replace(path, "softmax/b", lambda file, name: make(file, name, tmp_path / "secret"))
    with pytest.raises(ValueError, match="EL103.*softmax/b.*another file"):
        find_reader(files).read_softmax(files)
