"""A checkpoint is written whole, with digests, or not at all."""

import pytest
import torch

from spacy_elmo import load_embedder
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.allennlp import write_allennlp
from spacy_elmo.checkpoints.formats import CheckpointFiles, find_reader
from spacy_elmo.checkpoints.native import write_native
from spacy_elmo.files import DIGESTS_FILE, check_digests
from spacy_elmo.language_model.loading import collect_softmax, load_language_model
from spacy_elmo.language_model.softmax import make_softmax

from ..support.faults import fail_at_each_write, fail_at_size, kill_at_each_write
from ..support.helpers import SHAPE

WORDS = ["<S>", "</S>", "<UNK>", "eggs", "ham"]
NATIVE = {"config.json", "meta.json", "model.safetensors", "softmax.safetensors", "vocab.txt"}
ALLENNLP = {"options.json", "weights.hdf5", "softmax_weights.hdf5", "vocab.txt"}


def make_model(value):
    """A biLM and a softmax, all of whose weights are the same number."""
    bilm = BiLM(BiLMConfig(**SHAPE))
    softmax = make_softmax("full", 4, len(WORDS))
    with torch.no_grad():
        for weight in (*bilm.parameters(), *softmax.parameters()):
            weight.fill_(value)
    return bilm, collect_softmax(softmax, "full", {}, WORDS)


def write(folder, value, writer=write_native):
    bilm, softmax = make_model(value)
    writer(bilm, folder, softmax=softmax)


def read(folder):
    """The number that `make_model` got, from both files of weights."""
    model, _, _ = load_language_model(CheckpointFiles(folder))
    found = model.bilm.char_cnn.embedding.weight, model.softmax.weight
    (value,) = {float(number) for weight in found for number in weight.detach().flatten()}
    return value


@pytest.mark.parametrize("writer, names", [(write_native, NATIVE), (write_allennlp, ALLENNLP)])
def test_every_file_has_a_digest_and_equal_models_are_equal_bytes(tmp_path, writer, names):
    for name in ("a", "b"):
        write(tmp_path / name, 0.5, writer)
        assert {path.name for path in (tmp_path / name).iterdir()} == {*names, DIGESTS_FILE}
        check_digests(tmp_path / name, names)
    for name in (*names, DIGESTS_FILE):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert read(tmp_path / "a") == 0.5


@pytest.mark.parametrize("writer", [write_native, write_allennlp])
def test_folders_of_before_there_were_digests_are_read(tmp_path, writer):
    write(tmp_path / "a", 0.5, writer)
    (tmp_path / "a" / DIGESTS_FILE).unlink()
    assert read(tmp_path / "a") == 0.5


def test_a_killed_writer_leaves_the_old_or_the_new(tmp_path):
    folder = tmp_path / "model"
    write(folder, 0.5)
    seen = set()
    for _ in kill_at_each_write(lambda: write(folder, 2.0)):
        seen.add(read(folder))
        # The next writer clears away what the killed one left.
        write(folder, 0.5)
        assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert seen == {0.5, 2.0}


def test_all_readers_find_what_a_killed_writer_left_aside(tmp_path):
    folder = tmp_path / "model"
    write(folder, 0.5)
    folder.rename(tmp_path / "model.previous")

    files = CheckpointFiles(folder)
    assert find_reader(files).read_config(files).depth == 2
    assert find_reader(files).read_softmax(files).words == WORDS
    assert read(folder) == 0.5
    bilm = BiLM(BiLMConfig(**SHAPE))
    load_embedder(folder)
    write_native(bilm, folder)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_export_that_was_left_aside_is_found(tmp_path):
    write(tmp_path / "model.previous", 0.5, write_allennlp)
    assert read(tmp_path / "model") == 0.5


def test_a_killed_export_leaves_nothing_or_all(tmp_path):
    folder = tmp_path / "model"

    def work():
        # One that was killed behind its last rename has written all.
        if not folder.exists():
            write(folder, 2.0, write_allennlp)

    for _ in kill_at_each_write(work):
        assert not folder.exists() or read(folder) == 2.0
    # The last child came to its end, past what the killed ones had left.
    assert read(folder) == 2.0
    assert {path.name for path in tmp_path.iterdir()} <= {"model", ".model.lock"}


@pytest.mark.parametrize("writer", [write_native, write_allennlp])
def test_a_full_disk_leaves_what_was_there(tmp_path, writer):
    folder = tmp_path / "model"
    before = []
    if writer is write_native:
        write(folder, 0.5)
        before = ["model"]
    for _ in fail_at_each_write(lambda: write(folder, 2.0, writer)):
        assert [path.name for path in tmp_path.iterdir()] == before
        assert not before or read(folder) == 0.5
    assert read(folder) == 2.0


@pytest.mark.parametrize("writer", [write_native, write_allennlp])
@pytest.mark.parametrize("n_bytes", [0, 100, 2000, 9000])
def test_a_disk_that_is_full_in_the_middle_of_a_file(tmp_path, writer, n_bytes):
    assert not fail_at_size(lambda: write(tmp_path / "model", 2.0, writer), n_bytes)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for writer in (write_native, write_allennlp):
        with pytest.raises(ValueError, match=r"EL113.*file/model'.*[Nn]ot a directory"):
            write(tmp_path / "file" / "model", 0.5, writer)
        with pytest.raises(ValueError, match="EL113.*too long"):
            write(tmp_path / ("x" * 300), 0.5, writer)


@pytest.mark.parametrize("writer", [write_native, write_allennlp])
def test_folders_of_others_are_kept(tmp_path, writer):
    """What the writer would put aside and delete, too."""
    (tmp_path / "model.previous").mkdir()
    (tmp_path / "model.previous" / "thesis.txt").touch()
    with pytest.raises(ValueError, match="EL034.*model.previous"):
        write(tmp_path / "model", 0.5, writer)
    assert (tmp_path / "model.previous" / "thesis.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["model.previous"]


def test_an_export_replaces_nothing(tmp_path):
    write(tmp_path / "model", 0.5)
    (tmp_path / "model").rename(tmp_path / "model.previous")
    with pytest.raises(ValueError, match="EL034.*model.previous"):
        write(tmp_path / "model", 2.0, write_allennlp)
    assert read(tmp_path / "model") == 0.5


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("writer", [write_native, write_allennlp])
def test_weights_that_are_no_numbers_are_not_written(tmp_path, writer, value):
    with pytest.raises(ValueError, match=r"EL106.*the model to write"):
        write(tmp_path / "model", value, writer)
    assert not list(tmp_path.iterdir())


def test_weights_that_16_bits_cannot_hold_are_not_written(tmp_path):
    write(tmp_path / "model", 0.5)
    bilm, _ = make_model(1e5)
    with pytest.raises(ValueError, match=r"EL107.*char_cnn.*16 bits"):
        write_native(bilm, tmp_path / "model", dtype=torch.float16)
    assert read(tmp_path / "model") == 0.5
