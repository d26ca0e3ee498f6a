"""HDF5 files of strangers: nothing from outside of the file, bounded time and memory."""

import os
import struct
import zlib

import h5py
import numpy as np
import pytest
from spacy_elmo.checkpoints.hdf5 import find_dataset, list_datasets, open_hdf5
from spacy_elmo.checkpoints.hdf5_numbers import DIGEST, make_digest, read_numbers

from spacy_elmo import load_embedder
from spacy_elmo.checkpoints.formats import CheckpointFiles, find_reader
from spacy_elmo.checkpoints.loaders import read_config

from ..support.helpers import assert_close
from ..support.limits import finish_limited, refuse_limited
from ..support.toy import make_options, make_weights, write_datasets, write_model

SENTENCES = [["I", "like", "eggs"], ["Ham"]]
CELL = "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/"
BIAS = f"{CELL}B"
N_BIAS = 24


@pytest.fixture
def secret(tmp_path):
    """A file that the weights have no business with."""
    path = tmp_path / "secret"
    path.write_bytes(np.full(N_BIAS, 0.25, "float32").tobytes())
    return path


@pytest.fixture
def softmax_folder(toy_folder):
    """A toy model with a softmax."""
    write_datasets(
        toy_folder / "softmax_weights.hdf5", {"softmax/W": np.ones((4, 4)), "softmax/b": np.ones(4)}
    )
    (toy_folder / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nham\n")
    return toy_folder


def replace(path, name, make):
    """Have `make(file, name)` write a dataset anew."""
    with h5py.File(path, "a") as file:
        del file[name]
        make(file, name)


def external(secret, n):
    return lambda file, name: file.create_dataset(
        name, (n,), "float32", external=[(str(secret), 0, 4 * n)]
    )


def virtual(secret, n):
    def make(file, name):
        layout = h5py.VirtualLayout((n,), "float32")
        layout[:] = h5py.VirtualSource(str(secret), "x", (n,), "float32")
        file.create_virtual_dataset(name, layout)

    return make


def link(target):
    def make(file, name):
        file[name] = target

    return make


def ring(file, name):
    file[name] = h5py.SoftLink(f"/{name}")


FROM_OUTSIDE = {
    "external storage": (external, "stored in another file"),
    "virtual dataset": (virtual, "a virtual dataset"),
    "external link": (lambda s, n: link(h5py.ExternalLink(str(s), "/x")), "a link"),
    "soft link": (lambda s, n: link(h5py.SoftLink("/RNN_0")), "a link"),
    "soft link to nothing": (lambda s, n: link(h5py.SoftLink("/../secret")), "a link"),
    "link to itself": (lambda s, n: ring, "a link"),
}


@pytest.mark.parametrize("make, kind", FROM_OUTSIDE.values(), ids=FROM_OUTSIDE)
def test_numbers_from_outside_are_refused(toy_folder, secret, make, kind):
    replace(toy_folder / "weights.hdf5", BIAS, make(secret, N_BIAS))

    for load in (load_embedder, read_config):
        with pytest.raises(ValueError, match=rf"EL108.*LSTMCell/B'.*weights\.hdf5 is {kind}"):
            load(toy_folder)


@pytest.mark.parametrize("make, kind", FROM_OUTSIDE.values(), ids=FROM_OUTSIDE)
def test_a_softmax_from_outside_is_refused(softmax_folder, secret, make, kind):
    replace(softmax_folder / "softmax_weights.hdf5", "softmax/b", make(secret, 4))

    files = CheckpointFiles(softmax_folder)
    with pytest.raises(ValueError, match=rf"EL108.*softmax/b'.*is {kind}"):
        find_reader(files).read_softmax(files)


@pytest.mark.parametrize("make, kind", FROM_OUTSIDE.values(), ids=FROM_OUTSIDE)
def test_files_outside_are_not_even_opened(toy_folder, tmp_path, make, kind):
    """Opening a pipe that nobody writes to would wait for ever."""
    os.mkfifo(tmp_path / "pipe")
    replace(toy_folder / "weights.hdf5", BIAS, make(tmp_path / "pipe", N_BIAS))

    assert "EL108" in refuse_limited(lambda: load_embedder(toy_folder))


def test_a_group_that_is_a_link_is_refused(toy_folder, tmp_path):
    (tmp_path / "other").mkdir()
    options = make_options()
    write_model(tmp_path / "other", options, make_weights(options, seed=1))
    with h5py.File(toy_folder / "weights.hdf5", "a") as file:
        del file["RNN_0"]
        file["RNN_0"] = h5py.ExternalLink(str(tmp_path / "other" / "weights.hdf5"), "/RNN_0")

    with pytest.raises(ValueError, match=r"EL108.*RNN_0.*a link"):
        load_embedder(toy_folder)


def test_a_name_that_is_a_path_is_refused(toy_folder):
    path = toy_folder / "weights.hdf5"
    with h5py.File(path, "a") as file:
        file["RNN_0/more"] = np.zeros(1)
    path.write_bytes(path.read_bytes().replace(b"more\0", b"a/b\0\0", 1))

    with pytest.raises(ValueError, match="EL108.*a/b.*a path"):
        load_embedder(toy_folder)


def test_a_pipe_and_a_folder_are_no_weights(toy_folder):
    path = toy_folder / "weights.hdf5"
    path.unlink()
    os.mkfifo(path)
    assert "EL101" in refuse_limited(lambda: load_embedder(toy_folder))
    path.unlink()
    path.mkdir()
    with pytest.raises(ValueError, match="EL101"):
        load_embedder(toy_folder)


# A model whose weights have 12 GB, and files of it that are small.
HUGE = {"projection_dim": 8192, "dim": 10000, "n_layers": 2}


def zeros(file, name, shape):
    chunks = tuple(min(n, 1024) for n in shape)
    file.create_dataset(name, shape, "float32", chunks=chunks, compression="gzip")


def unwritten(file, name, shape):
    file.create_dataset(name, shape, "float32")


def unwritten_chunks(file, name, shape):
    file.create_dataset(name, shape, "float32", chunks=shape)


def write_huge(folder, options, make):
    from spacy_elmo.checkpoints.allennlp import config_from_options
    from spacy_elmo.checkpoints.allennlp_layout import plan_datasets

    write_model(folder, options, {})
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, dataset in plan_datasets(config_from_options(options, "here")):
            make(file, name, dataset.shape)


@pytest.mark.parametrize(
    "make, code", [(zeros, "EL110"), (unwritten, "EL109"), (unwritten_chunks, "EL110")]
)
def test_a_small_file_of_large_weights_is_refused(tmp_path, make, code):
    write_huge(tmp_path, make_options(**HUGE), make)
    size = (tmp_path / "weights.hdf5").stat().st_size
    assert size < 200_000

    for load in (load_embedder, read_config):
        assert f"[{code}]" in refuse_limited(lambda load=load: load(tmp_path))


def test_numbers_that_no_shape_asks_for_are_not_read(toy_folder):
    """32 GB of zeros in 40 kB."""
    replace(
        toy_folder / "weights.hdf5", BIAS, lambda file, name: zeros(file, name, (90_000, 90_000))
    )
    assert "EL021" in refuse_limited(lambda: load_embedder(toy_folder))
    with h5py.File(toy_folder / "weights.hdf5", "a") as file:
        del file[BIAS]
        file[BIAS] = np.zeros(N_BIAS, "float32")
        zeros(file, "more", (90_000, 90_000))
    assert "EL020" in refuse_limited(lambda: load_embedder(toy_folder))


def test_datasets_that_share_their_numbers_are_refused(tmp_path):
    """A hundred layers out of the bytes of one."""
    options = make_options(n_layers=100, projection_dim=512, dim=600, n_highway=0)
    one_layer = {**options, "lstm": {**options["lstm"], "n_layers": 1}}
    weights = make_weights(one_layer, word_projection=True)
    cells = [f"RNN_{d}/RNN/MultiRNNCell/Cell{i}/LSTMCell" for d in (0, 1) for i in range(100)]
    _, path = write_model(
        tmp_path, options, {n: w for n, w in weights.items() if not n.startswith("RNN")}
    )
    with h5py.File(path, "a") as file:
        for part in ("W_0", "B", "W_P_0"):
            file[f"{cells[0]}/{part}"] = weights[f"RNN_0/RNN/LSTMCell/{part}"]
        for cell in cells[1:]:
            file[cell] = file[cells[0]]

    assert "EL110" in refuse_limited(lambda: read_config(tmp_path))
    assert "EL110" in refuse_limited(lambda: load_embedder(tmp_path))


def test_a_block_that_unfolds_to_many_bytes_is_stopped(toy_folder):
    def bomb(file, name):
        dataset = file.create_dataset(
            name, (N_BIAS,), "float32", chunks=(N_BIAS,), compression="gzip"
        )
        packer = zlib.compressobj(1)
        block = bytes(1 << 24)
        content = b"".join(packer.compress(block) for _ in range(32)) + packer.flush()
        dataset.id.write_direct_chunk((0,), content)

    replace(toy_folder / "weights.hdf5", BIAS, bomb)
    assert (toy_folder / "weights.hdf5").stat().st_size < 3_000_000

    message = refuse_limited(lambda: load_embedder(toy_folder))
    assert "EL033" in message and "more than 96 bytes" in message


def test_thousands_of_blocks_of_a_few_numbers_are_refused(tmp_path):
    options = make_options(projection_dim=64, dim=128)
    weights = make_weights(options)
    write_model(tmp_path, options, weights)
    name = f"{CELL}W_0"
    replace(
        tmp_path / "weights.hdf5",
        name,
        lambda file, name: file.create_dataset(
            name, data=weights[name], chunks=(1, 4), compression="gzip"
        ),
    )
    assert "EL110" in refuse_limited(lambda: load_embedder(tmp_path))


def test_thousands_of_groups_are_refused(toy_folder):
    with h5py.File(toy_folder / "weights.hdf5", "a") as file:
        group = file
        for _ in range(3000):
            group = group.create_group("deeper")
    assert "EL110" in refuse_limited(lambda: load_embedder(toy_folder))


def test_thousands_of_entries_are_refused(toy_folder):
    with h5py.File(toy_folder / "weights.hdf5", "a", libver="latest") as file:
        many = file.create_group("many")
        for i in range(6000):
            many[f"g{i}"] = file["CNN"]
    assert "EL110" in refuse_limited(lambda: load_embedder(toy_folder))
    with pytest.raises(ValueError, match="EL110.*more than the 5000"):
        load_embedder(toy_folder)


def test_groups_in_a_ring_are_refused(toy_folder):
    with h5py.File(toy_folder / "weights.hdf5", "a") as file:
        file["CNN/again"] = file["/"]
    assert "EL110" in refuse_limited(lambda: load_embedder(toy_folder))


def test_an_index_that_loops_is_not_followed(tmp_path):
    """HDF5 lists such a group until the stack is full, and the process is gone."""
    options = make_options()
    _, path = write_model(tmp_path, options, make_weights(options))
    content = bytearray(path.read_bytes())
    node = content.index(b"TREE")
    content[node + 5] = 1
    content[node + 32 : node + 40] = struct.pack("<Q", node)
    path.write_bytes(content)

    assert "EL033" in refuse_limited(lambda: load_embedder(tmp_path))


def test_an_index_of_several_levels_is_not_listed(toy_folder):
    """No biLM has as many entries; what it needs is found all the same."""
    path = toy_folder / "weights.hdf5"
    with h5py.File(path, "a") as file:
        for i in range(400):
            file[f"more/g{i}"] = file["CNN"]
    with open_hdf5(path) as file:
        assert list_datasets(file) == []
        assert find_dataset(file, BIAS).shape == (N_BIAS,)
    finish_limited(lambda: load_embedder(toy_folder))


STORED = {
    "gzip": {"compression": "gzip"},
    "gzip and shuffle": {"compression": "gzip", "shuffle": True},
    "shuffle": {"shuffle": True},
    "blocks": {"chunks": True},
    "odd blocks": {"chunks": 5},
    "other byte order": {"dtype": ">f4"},
    "16 bits": {"dtype": "<f2"},
    "64 bits": {"dtype": ">f8", "compression": "gzip", "shuffle": True},
}


@pytest.mark.parametrize("settings", STORED.values(), ids=STORED)
def test_other_storage_is_read(tmp_path, settings):
    options = make_options()
    weights = {n: a.astype("float16").astype("float32") for n, a in make_weights(options).items()}
    expected = load_embedder(*write_model(tmp_path / "plain", options, weights)).embed(SENTENCES)
    pair = write_model(tmp_path / "other", options, {})
    settings = dict(settings)
    dtype = settings.pop("dtype", "<f4")
    chunk = settings.pop("chunks", None)
    with h5py.File(pair[1], "w") as file:
        for name, array in weights.items():
            chunks = (
                tuple(min(chunk, n) for n in array.shape) if chunk not in (None, True) else chunk
            )
            file.create_dataset(name, data=array.astype(dtype), chunks=chunks, **settings)

    assert_close(load_embedder(*pair).embed(SENTENCES), expected, atol=0)


@pytest.mark.parametrize("chunks", [None, 3, 100])
@pytest.mark.parametrize("settings", [{}, {"compression": "gzip"}], ids=["plain", "gzip"])
def test_the_newer_layout_of_files_is_read(toy_folder, chunks, settings):
    options = make_options()
    weights = make_weights(options)
    expected = load_embedder(toy_folder).embed(SENTENCES)
    with h5py.File(toy_folder / "weights.hdf5", "w", libver="latest") as file:
        for name, array in weights.items():
            shape = None if chunks is None else tuple(min(chunks, n) for n in array.shape)
            file.create_dataset(name, data=array, chunks=shape, **settings)

    assert_close(load_embedder(toy_folder).embed(SENTENCES), expected, atol=0)


def broken(file, name):
    dataset = file.create_dataset(name, (N_BIAS,), "float32", chunks=(8,), compression="gzip")
    dataset[:8] = 1.0  # of three blocks


NOT_READ = {
    "filter": (
        lambda f, n: f.create_dataset(n, data=np.zeros(N_BIAS, "f4"), fletcher32=True),
        "EL109.*LSTMCell/B.*filters 3",
    ),
    "nothing written": (lambda f, n: f.create_dataset(n, (N_BIAS,), "f4"), "EL109.*never written"),
    "a chunked one": (
        lambda f, n: f.create_dataset(n, (N_BIAS,), "f4", chunks=(N_BIAS,)),
        "EL109.*never written",
    ),
    "a block missing": (broken, "EL109.*never written"),
    "long numbers": (
        lambda f, n: f.create_dataset(n, data=np.zeros(N_BIAS, "longdouble")),
        "EL022.*LSTMCell/B.*other",
    ),
    "complex numbers": (
        lambda f, n: f.create_dataset(n, data=np.zeros(N_BIAS, "c8")),
        "EL022.*LSTMCell/B.*complex64",
    ),
    "records": (
        lambda f, n: f.create_dataset(n, data=np.zeros(N_BIAS, [("a", "f4"), ("b", "i2")])),
        "EL022.*LSTMCell/B",
    ),
    "a group": (lambda f, n: f.create_group(n), "EL020.*Missing.*LSTMCell/B"),
    "nothing": (
        lambda f, n: f.create_dataset(n, data=h5py.Empty("f4")),
        r"EL021.*LSTMCell/B.*\(\)",
    ),
    "nan": (
        lambda f, n: f.create_dataset(n, data=np.r_[np.zeros(N_BIAS - 1), np.nan]),
        r"EL106.*LSTMCell/B.*weights\.hdf5.*\[23\]",
    ),
    "too large": (
        lambda f, n: f.create_dataset(n, data=np.r_[np.zeros(N_BIAS - 1), 1e300]),
        r"EL106.*LSTMCell/B.*\[23\]",
    ),
}


@pytest.mark.parametrize("make, match", NOT_READ.values(), ids=NOT_READ)
def test_what_is_no_plain_dataset_is_refused_by_name(toy_folder, make, match):
    replace(toy_folder / "weights.hdf5", BIAS, make)
    with pytest.raises(ValueError, match=match):
        load_embedder(toy_folder)


def test_what_is_behind_a_dataset_is_not_there(toy_folder):
    with open_hdf5(toy_folder / "weights.hdf5") as file:
        assert find_dataset(file, "char_embed/more") is None
        assert find_dataset(file, "nothing/more") is None
        assert find_dataset(file, "CNN") is None


def test_a_digest_is_of_the_numbers(tmp_path):
    path = tmp_path / "a.hdf5"
    array = np.arange(6, dtype="float32").reshape(2, 3)
    with h5py.File(path, "w") as file:
        for name, value in (("a", array), ("b", array + 1), ("c", array.astype(">f4"))):
            file[name] = value
            file[name].attrs[DIGEST] = np.bytes_(make_digest(array))
        file["d"] = array
        file["d"].attrs[DIGEST] = "too short"

    with open_hdf5(path) as file:
        for name in ("a", "c"):
            np.testing.assert_array_equal(read_numbers(find_dataset(file, name)), array)
        with pytest.raises(ValueError, match="EL111.*'b' in .*a.hdf5"):
            read_numbers(find_dataset(file, "b"))
        with pytest.raises(ValueError, match="EL033.*no text"):
            read_numbers(find_dataset(file, "d"))
