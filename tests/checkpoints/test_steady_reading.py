"""A checkpoint that another process replaces is read as it was at one moment."""

import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints import formats
from spacy_elmo.checkpoints.checkpoint_files import CheckpointFiles
from spacy_elmo.checkpoints.native import write_native
from spacy_elmo.checkpoints.steady_reading import read_steadily
from spacy_elmo.language_model.loading import collect_softmax, load_language_model
from spacy_elmo.language_model.softmax import Softmax

from ..support.helpers import SHAPE

WORDS = ["<S>", "</S>", "<UNK>", "ham"]


def write_filled(folder, value):
    """All weights are the same number."""
    bilm = BiLM(BiLMConfig(**SHAPE))
    softmax = Softmax(bilm.config.direction_width, len(WORDS))
    with torch.no_grad():
        for weight in (*bilm.parameters(), *softmax.parameters()):
            weight.fill_(value)
    write_native(bilm, folder, softmax=collect_softmax(softmax, "full", {}, WORDS))


@pytest.fixture
def folder(tmp_path):
    write_filled(tmp_path / "model-best", 1.0)
    return tmp_path / "model-best"


def test_a_model_and_its_softmax_are_of_one_moment(folder, monkeypatch):
    load, n_replaced = formats.load_weights, 0

    def replace_after(bilm, state, source):
        nonlocal n_replaced
        load(bilm, state, source)
        if n_replaced < 2:
            n_replaced += 1
            write_filled(folder, 1.0 + n_replaced)

    monkeypatch.setattr(formats, "load_weights", replace_after)
    loaded = load_language_model(CheckpointFiles(folder))

    found = torch.cat([weight.flatten() for weight in loaded.model.parameters()])
    assert found.unique().tolist() == [3.0]


@pytest.mark.parametrize("error", [None, ValueError("a part of it")])
def test_what_was_replaced_is_read_again(folder, error):
    attempts = []

    def read():
        attempts.append(len(attempts))
        if len(attempts) == 1:
            write_filled(folder, 2.0)
            if error is not None:
                raise error
        return len(attempts)

    assert read_steadily(CheckpointFiles(folder), read) == 2


def test_what_cannot_be_read_is_read_once(folder):
    attempts = []

    def read():
        attempts.append(1)
        raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        read_steadily(CheckpointFiles(folder), read)
    assert attempts == [1]


def test_what_is_replaced_all_the_time_is_told(folder):
    with pytest.raises(ValueError, match="EL335.*model-best"):
        read_steadily(CheckpointFiles(folder), lambda: write_filled(folder, 2.0))


@pytest.mark.parametrize("name", ["options.json", "weights.hdf5"])
def test_each_of_two_files_counts(tmp_path, name):
    files = CheckpointFiles(tmp_path / "options.json", tmp_path / "weights.hdf5")
    for path in files:
        path.write_text("old")

    def replace():
        (tmp_path / "new").write_text("new")
        (tmp_path / "new").replace(tmp_path / name)

    assert read_steadily(files, files.path.read_text) == "old"
    with pytest.raises(ValueError, match="EL335"):
        read_steadily(files, replace)
