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


@pytest.fixture
def replace_after_reading(folder, monkeypatch):
    """Other weights take the place of those that were read, before the softmax is read."""
    find_reader, values = formats.find_reader, []

    def find(files):
        reader = find_reader(files)

        def read_state(*arguments):
            state = reader.read_state(*arguments)
            if values:
                write_filled(folder, values.pop(0))
            return state

        return reader._replace(read_state=read_state)

    monkeypatch.setattr(formats, "find_reader", find)
    return values.extend


def test_a_bilm_is_filled_once_or_not_at_all(folder, replace_after_reading):
    bilm = BiLM(BiLMConfig(**SHAPE))
    before = {name: tensor.clone() for name, tensor in bilm.state_dict().items()}
    replace_after_reading([2.0, 3.0, 4.0, 5.0, 6.0])
    with pytest.raises(ValueError, match="EL335"):
        formats.fill_bilm(bilm, CheckpointFiles(folder), "{path}{differences}")

    assert all(torch.equal(bilm.state_dict()[name], tensor) for name, tensor in before.items())


def test_a_model_and_its_softmax_are_of_one_moment(folder, replace_after_reading):
    replace_after_reading([2.0, 3.0])
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
