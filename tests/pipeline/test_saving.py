"""What components save: damage is told, a fault loses nothing, and bytes of strangers are read
with care."""

import gc
import random
import struct
import time

import numpy as np
import pytest
import spacy
import srsly
import torch

from spacy_elmo.files import DIGESTS_FILE, join_files, read_files, split_files, unpack, write_files
from spacy_elmo.layers.elmo_layers import get_most_bytes
from spacy_elmo.pipeline.elmo_lm import ElmoLM
from spacy_elmo.senses.sense_model import SenseModel

from ..data.pipeline_0_1_0.make import TEXTS, read_docs
from ..support.faults import fail_at_each_write, fail_at_size, kill_at_each_write
from ..support.helpers import assert_close, make_nlp, vectors
from .test_older_versions import PIPELINE

OURS = "EL0[2-3]|EL10|EL116"
COMPONENTS = ["elmo", "elmo_senses"]


def load_old():
    """A pipeline with all components, of a tiny shape."""
    return spacy.load(PIPELINE / "pipeline")


@pytest.fixture(scope="module")
def nlp():
    return load_old()


# Thousands of files are written, which takes minutes where a disk is slow.
EVERY_BYTE = [pytest.mark.slow, pytest.mark.timeout(1200)]


def says(nlp):
    arrays, rest = read_docs(nlp.pipe(TEXTS))
    return srsly.json_dumps(rest) + "".join(f"{np.nan_to_num(a).round(4)}" for a in arrays.values())


def flip(content, bit):
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def some_bits(content, n):
    """One of each byte, or of n bytes if there are more."""
    rng, places = random.Random(0), range(len(content))
    places = places if len(places) <= n else rng.sample(places, n)
    return [8 * place + rng.randrange(8) for place in places]


@pytest.mark.parametrize("n_places", [300, pytest.param(10**9, marks=EVERY_BYTE)])
@pytest.mark.parametrize("name", COMPONENTS)
def test_a_flipped_bit_in_any_file_is_told(nlp, tmp_path, name, n_places):
    pipe, expected = nlp.get_pipe(name), says(nlp)
    pipe.to_disk(tmp_path, exclude=["vocab"])
    files = sorted(path for path in tmp_path.iterdir())
    assert DIGESTS_FILE in [path.name for path in files]

    for path in files:
        content = path.read_bytes()
        for bit in some_bits(content, n_places):
            path.write_bytes(flip(content, bit))
            with pytest.raises(ValueError, match=OURS):
                pipe.from_disk(tmp_path, exclude=["vocab"])
        path.write_bytes(content)

    # The one that could not load them is as it was.
    assert says(nlp) == expected
    pipe.from_disk(tmp_path, exclude=["vocab"])
    assert says(nlp) == expected


@pytest.mark.parametrize("n_places", [600, pytest.param(10**9, marks=EVERY_BYTE)])
@pytest.mark.parametrize("name", [*COMPONENTS, "elmo_lm"])
def test_a_flipped_bit_in_bytes_is_told(nlp, name, n_places):
    pipe, expected = nlp.get_pipe(name), says(nlp)
    data = pipe.to_bytes(exclude=["vocab"])

    for bit in some_bits(data, n_places):
        with pytest.raises(ValueError, match=OURS):
            pipe.from_bytes(flip(data, bit), exclude=["vocab"])
    for n_bytes in range(0, len(data), max(1, len(data) // 50)):
        with pytest.raises(ValueError, match=OURS):
            pipe.from_bytes(data[:n_bytes], exclude=["vocab"])

    assert says(nlp) == expected


@pytest.mark.parametrize("data", [b"", b"\x92", "x", 5, None, b"\xc1", srsly.msgpack_dumps({})])
@pytest.mark.parametrize("name", [*COMPONENTS, "elmo_lm"])
def test_bytes_of_something_else_are_refused(nlp, name, data):
    with pytest.raises(ValueError, match="EL116"):
        nlp.get_pipe(name).from_bytes(data)


BAD_FILES = {
    "another name": {"../../x": b"data"},
    "an absolute name": {"/tmp/spacy_elmo_was_here": b"data"},
    "a folder of ours": {"language_model/../../x": b"data"},
    "a number as name": {5: b"data"},
    "a list as content": {"config.json": [1]},
    "a table as content": {"vocab.txt": {"a": 1}},
    "nothing": {"vocab.txt": None},
}


@pytest.mark.parametrize("files", BAD_FILES.values(), ids=BAD_FILES)
@pytest.mark.parametrize("with_others", [True, False])
def test_names_in_bytes_are_no_paths(nlp, tmp_path, monkeypatch, files, with_others):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    message = unpack(nlp.get_pipe("elmo_lm").to_bytes(), "a test") if with_others else {}
    message.pop("digests", None)
    data = srsly.msgpack_dumps({**message, **files})

    with pytest.raises(ValueError, match="EL116.*'elmo_lm'"):
        ElmoLM(nlp.vocab).from_bytes(data)
    whole = srsly.msgpack_loads(nlp.to_bytes())
    with pytest.raises(ValueError, match="EL116.*'elmo_lm'"):
        nlp.from_bytes(srsly.msgpack_dumps({**whole, "elmo_lm": data}))

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [*COMPONENTS, "elmo_lm"])
@pytest.mark.parametrize("fault", [kill_at_each_write, fail_at_each_write])
def test_a_fault_while_saving_again_loses_nothing(tmp_path, name, fault):
    old, new, reader = load_old(), make_changed(), load_old()
    before, after = old.get_pipe(name), new.get_pipe(name)
    before.to_disk(tmp_path / "pipe", exclude=["vocab"])
    found = set()

    for _ in fault(lambda: after.to_disk(tmp_path / "pipe", exclude=["vocab"])):
        reader.get_pipe(name).from_disk(tmp_path / "pipe", exclude=["vocab"])
        found.add(says(reader))
        before.to_disk(tmp_path / "pipe", exclude=["vocab"])

    expected = load_old()
    expected.get_pipe(name).from_bytes(after.to_bytes(exclude=["vocab"]), exclude=["vocab"])
    assert says(old) in found <= {says(old), says(expected)}
    assert says(old) != says(expected)


def make_changed():
    """The pipeline with other weights, words and senses."""
    nlp = load_old()
    elmo, lm, senses = (nlp.get_pipe(name) for name in ("elmo", "elmo_lm", "elmo_senses"))
    elmo.model.layers[1].set_param("gamma", np.array([3.0], dtype="float32"))
    lm.load().model.softmax.bias.data += torch.linspace(0, 1, 11)
    senses.model.inventory.senses.clear()
    return nlp


def test_a_full_disk_keeps_the_old_model(nlp, tmp_path):
    elmo = nlp.get_pipe("elmo")
    elmo.to_disk(tmp_path)
    content = (tmp_path / "model").read_bytes()

    assert not fail_at_size(lambda: elmo.to_disk(tmp_path), len(content) // 2)

    assert (tmp_path / "model").read_bytes() == content
    elmo.from_disk(tmp_path)


def test_files_of_others_are_kept(nlp, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "sub").mkdir()

    nlp.get_pipe("elmo").to_disk(tmp_path)

    assert (tmp_path / "notes.txt").read_text() == "mine" and (tmp_path / "sub").is_dir()
    assert {path.name for path in tmp_path.iterdir()} == {
        "cfg", "digests.json", "model", "notes.txt", "sub", "vocab",
    }  # fmt: skip


def test_what_is_not_written_stays_what_it_was(nlp, tmp_path):
    elmo = nlp.get_pipe("elmo")
    elmo.to_disk(tmp_path, exclude=["vocab"])
    elmo.to_disk(tmp_path, exclude=["vocab", "model"])
    elmo.from_disk(tmp_path, exclude=["vocab"])

    content = bytearray((tmp_path / "model").read_bytes())
    content[-1] ^= 1
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ValueError, match="EL104.*model"):
        elmo.from_disk(tmp_path, exclude=["vocab"])


def test_what_is_excluded_is_neither_saved_nor_loaded(nlp, tmp_path):
    elmo, other = nlp.get_pipe("elmo"), make_nlp(seed=4).get_pipe("elmo")
    expected = vectors(make_nlp(seed=4).pipe(TEXTS))
    elmo.to_disk(tmp_path, exclude=["model", "vocab"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cfg", "digests.json"]

    other.from_disk(tmp_path, exclude=["model", "vocab"])
    other.from_bytes(elmo.to_bytes(exclude=["model"]), exclude=["model"])
    other.from_bytes(elmo.to_bytes(), exclude=["model", "vocab"])
    docs = [other(make_nlp().make_doc(text)) for text in TEXTS]
    assert_close(vectors(docs), expected)
    with pytest.raises(ValueError, match="EL116.*lack model"):
        other.from_bytes(elmo.to_bytes(exclude=["model"]))


# Elmo's model, from somebody who can also make digests


def change_model(change):
    def apply(files):
        message = srsly.msgpack_loads(files["model"])
        change(message)
        return {**files, "model": srsly.msgpack_dumps(message)}

    return apply


def set_param(name, value):
    return change_model(lambda message: message["params"][2].update({name: value}))


def set_state(state):
    return change_model(lambda message: message["shims"].__setitem__(3, [state]))


BAD_MODELS = {
    "no model": lambda files: {"cfg": files["cfg"]},
    "no message": lambda files: {**files, "model": b"\xc1"},
    "a list": lambda files: {**files, "model": srsly.msgpack_dumps([1, 2])},
    "no nodes": change_model(lambda message: message.pop("nodes")),
    "nodes are numbers": change_model(lambda message: message.update(nodes=[1, 2, 3, 4])),
    "another model": change_model(lambda message: message["nodes"][2].update(name="softmax")),
    "no weights": change_model(lambda message: message.update(shims=[[], [], [], []])),
    "weights are a number": set_state(5),
    "weights are a table of nothing": set_state(srsly.msgpack_dumps({"config": None})),
    "weights are no safetensors": set_state(srsly.msgpack_dumps({"state": b"abc"})),
    "weights are text": set_state(srsly.msgpack_dumps({"state": "abc"})),
    "a mix of two layers": set_param("W", np.zeros(2, dtype="float32")),
    "a mix of NaN": set_param("W", np.full(3, np.nan, dtype="float32")),
    "a mix of doubles": set_param("W", np.zeros(3)),
    "a mix of text": set_param("W", "abc"),
    "no scale": set_param("gamma", None),
    "a mix that is a list": change_model(lambda message: message["params"].__setitem__(2, ["W"])),
    "a cfg of numbers": lambda files: {**files, "cfg": b"[1]"},
    "a cfg that is damaged": lambda files: {**files, "cfg": b'{"lang'},
    "a language that is a list": lambda files: {**files, "cfg": b'{"lang": ["en"]}'},
}


@pytest.mark.parametrize("change", BAD_MODELS.values(), ids=BAD_MODELS)
def test_impossible_models_are_refused_and_change_nothing(nlp, tmp_path, change):
    elmo, expected = nlp.get_pipe("elmo"), says(nlp)
    limits = {"cfg": 10**6, "model": 10**6}
    files = split_files(elmo.to_bytes(exclude=["vocab"]), limits, "a test")
    files = change(files)
    write_files(tmp_path, files)

    with pytest.raises(ValueError, match="EL116|EL033|EL100"):
        elmo.from_bytes(join_files(files))
    with pytest.raises(ValueError, match="EL116|EL033|EL100"):
        elmo.from_disk(tmp_path)
    assert says(nlp) == expected


def test_nothing_but_weights_is_taken_from_a_model(nlp):
    elmo, expected = nlp.get_pipe("elmo"), says(nlp)
    limits = {"cfg": 10**6, "model": 10**6}
    files = split_files(elmo.to_bytes(exclude=["vocab"]), limits, "a test")
    attrs = {name: srsly.msgpack_dumps("x") for name in ("settings", "replace_listener")}
    change = change_model(lambda message: message["attrs"][1].update(attrs))
    settings = dict(elmo.model.layers[0].attrs)

    elmo.from_bytes(join_files(change(files)))

    assert elmo.model.layers[0].attrs == settings
    assert says(nlp) == expected


def test_a_model_too_large_is_not_read(nlp, tmp_path):
    elmo = nlp.get_pipe("elmo")
    elmo.to_disk(tmp_path)
    (tmp_path / DIGESTS_FILE).unlink()
    with (tmp_path / "model").open("r+b") as file:
        # Sparse: it takes no room on the disk.
        file.truncate(10**12)

    assert get_most_bytes(elmo.model) < 2_000_000
    with pytest.raises(ValueError, match=r"EL103.*model.*1000000000000"):
        elmo.from_disk(tmp_path)


# Senses, from somebody who can also make digests


def test_mutated_senses_are_refused_or_right(nlp):
    """Without a digest, as version 0.1.0 wrote them: indices in range, lists of equal length."""
    pipe, rng = nlp.get_pipe("elmo_senses"), random.Random(0)
    data = pipe.get_model().to_bytes()
    n_loaded = 0
    for _ in range(2500):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] = rng.randrange(256)
        try:
            model = SenseModel.from_bytes(bytes(damaged))
        except ValueError as err:
            assert "EL116" in str(err)
            continue
        n_loaded += 1
        n = len(model.centroids.vectors)
        assert sorted(model.centroids.rows.values()) == list(range(n))
        assert len(model.centroids.counts) == n and min(model.centroids.counts) >= 1
        rows = np.ones((3, model.centroids.vectors.shape[1]))
        model.centroids.layer = 0
        assert isinstance(model.choose("bank", rows), str)
    assert 0 < n_loaded < 2400


def change_centroids(**changes):
    def apply(inventory, centroids):
        return [srsly.msgpack_dumps(inventory), srsly.msgpack_dumps({**centroids, **changes})]

    return apply


def change_inventory(**changes):
    def apply(inventory, centroids):
        return [srsly.msgpack_dumps({**inventory, **changes}), srsly.msgpack_dumps(centroids)]

    return apply


ROWS = {"bank%1:00:00::": 0, "green%3:00:00::": 1}
VECTORS = np.eye(2, 8, dtype="float16")
BAD_SENSES = {
    "one part": lambda inventory, centroids: [srsly.msgpack_dumps(inventory)],
    "text": lambda inventory, centroids: ["a", "b"],
    "a negative row": change_centroids(rows={"a": -1, "b": 0}, counts=[1, 1], vectors=VECTORS),
    "a row too many": change_centroids(rows={"a": 0, "b": 2}, counts=[1, 1], vectors=VECTORS),
    "a row twice": change_centroids(rows={"a": 0, "b": 0}, counts=[1, 1], vectors=VECTORS),
    "a row of truth": change_centroids(rows={"a": True, "b": 0}, counts=[1, 1], vectors=VECTORS),
    "too few counts": change_centroids(rows=ROWS, counts=[1], vectors=VECTORS),
    "a count of zero": change_centroids(rows=ROWS, counts=[0, 1], vectors=VECTORS),
    "vectors of one dimension": change_centroids(rows={}, counts=[], vectors=VECTORS[0, :0]),
    "vectors of NaN": change_centroids(rows=ROWS, counts=[1, 1], vectors=VECTORS * np.nan),
    "long vectors": change_centroids(rows=ROWS, counts=[1, 1], vectors=VECTORS * 2),
    "vectors of doubles": change_centroids(
        rows=ROWS, counts=[1, 1], vectors=VECTORS.astype("float64")
    ),
    "a layer below": change_centroids(layer=-1),
    "a layer by name": change_centroids(layer="top"),
    "a prior of NaN": change_centroids(prior=float("nan")),
    "a prior of text": change_centroids(prior="0.1"),
    "another field": change_centroids(more=1),
    "senses without counts": change_inventory(senses={"bank|n": ["a", "b"]}),
    "senses of a number": change_inventory(senses={"bank|n": 5}),
    "senses with a negative count": change_inventory(senses={"bank|n": [["a", -1]]}),
    "a table that is a list": change_inventory(glosses=["a"]),
    "glosses of numbers": change_inventory(glosses={"a": 1}),
    "exceptions of text": change_inventory(exceptions={"mice|n": "mouse"}),
    "endings of three": change_inventory(endings={"n": [["a", "b", "c"]]}),
    "no endings": lambda inventory, centroids: [
        srsly.msgpack_dumps({key: inventory[key] for key in inventory if key != "endings"}),
        srsly.msgpack_dumps(centroids),
    ],
}


@pytest.mark.parametrize("change", BAD_SENSES.values(), ids=BAD_SENSES)
def test_impossible_senses_are_refused(nlp, tmp_path, change):
    pipe, expected = nlp.get_pipe("elmo_senses"), says(nlp)
    parts = srsly.msgpack_loads(pipe.get_model().to_bytes())
    *contents, weights = parts
    changed = change(*(srsly.msgpack_loads(content) for content in contents))
    data = srsly.msgpack_dumps([*changed, weights])
    write_files(tmp_path, {"senses.msgpack": data})

    for load in (
        lambda: pipe.from_bytes(data),
        lambda: pipe.from_bytes(join_files({"senses.msgpack": data})),
        lambda: pipe.from_disk(tmp_path),
    ):
        with pytest.raises(ValueError, match="EL116"):
            load()
    assert says(nlp) == expected


def test_senses_of_another_bilm_are_told(nlp):
    senses = nlp.get_pipe("elmo_senses")
    other = make_nlp(store_layers=True, width=4, cell_width=3, lang="xx")
    other.add_pipe("elmo_senses").model = senses.get_model()

    with pytest.raises(ValueError, match="EL117.*width 8.*3 layers of width 4"):
        other("the river bank")


# Messages


def test_nested_lists_are_read_in_bounded_time():
    n = 1_000_000
    data = b"".join(b"\xdd" + struct.pack(">I", n) for _ in range(900)) + b"\x00" * n
    start = time.perf_counter()

    with pytest.raises(ValueError, match="EL116.*a test"):
        unpack(data, "a test")

    assert time.perf_counter() - start < 2
    assert gc.isenabled()


@pytest.mark.parametrize(
    "data",
    [
        srsly.msgpack_dumps({b"nd": True, b"type": "O", b"shape": [1], b"data": b"12345678"}),
        srsly.msgpack_dumps({b"nd": True, b"type": "<f4", b"shape": [9], b"data": b"1234"}),
        srsly.msgpack_dumps({b"nd": True, b"type": 5, b"shape": "x", b"data": 7}),
        b"\x81\x91\x01\x02",
        b"\xa2\xff\xff",
    ],
)
def test_arrays_that_are_none_are_refused(data):
    with pytest.raises(ValueError, match="EL116"):
        unpack(data, "a test")


def test_files_of_a_folder_are_read_as_they_were_written(tmp_path):
    files = {"a": b"1", "b": b""}
    write_files(tmp_path / "new" / "folder", files)

    assert read_files(tmp_path / "new" / "folder", {"a": 1, "b": 0}) == files
    with pytest.raises(ValueError, match="EL103"):
        read_files(tmp_path / "new" / "folder", {"a": 0})
    with pytest.raises(ValueError, match="EL104"):
        (tmp_path / "new" / "folder" / "c").touch()
        read_files(tmp_path / "new" / "folder", {"c": 9})


def test_files_of_a_message_are_read_as_they_were_written():
    data = join_files({"a": b"1", "b": b""})

    assert split_files(data, {"a": 1, "b": 1}, "a test") == {"a": b"1", "b": b""}
    with pytest.raises(ValueError, match="EL116.*'a' is no file of at most 0"):
        split_files(data, {"a": 0, "b": 1}, "a test")
    with pytest.raises(ValueError, match="EL116.*they lack c"):
        split_files(data, {"a": 1, "b": 1, "c": 1}, "a test")
    assert split_files(data, {"a": 1, "b": 1, "c": 1}, "a test", optional=["c"])
