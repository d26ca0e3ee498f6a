"""A biLM together with its softmax, from checkpoints."""

import catalogue
import pytest
import spacy
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.formats import CheckpointFiles, SoftmaxWeights
from spacy_elmo.checkpoints.native import write_native
from spacy_elmo.language_model.loading import (
    collect_softmax,
    copy_softmax_rows,
    load_language_model,
)
from spacy_elmo.language_model.softmax import AdaptiveSoftmax, Softmax, make_softmax
from spacy_elmo.registry import softmaxes

from ..support.helpers import SHAPE

WORDS = ["<S>", "</S>", "<UNK>", "eggs", "ham", "I"]


class Wide(AdaptiveSoftmax):
    """A softmax of another package, without a `kind` and with another default."""

    def __init__(self, width, n_words, cutoffs=(4,)):
        super().__init__(width, n_words, cutoffs)
        self.register_buffer("clusters", torch.tensor([2, 1, 0], dtype=torch.int32))


@pytest.fixture
def kind(monkeypatch):
    """The name under which another package registered its class."""
    name = "theirs.wide.v1"
    monkeypatch.setitem(catalogue.REGISTRY, (*softmaxes.namespace, name), Wide)
    return name


def write_lm(folder, kind):
    softmax = collect_softmax(make_softmax(kind, 4, len(WORDS)), kind, {}, WORDS)
    write_native(BiLM(BiLMConfig(**SHAPE)), folder, softmax=softmax)
    return folder


def test_a_softmax_of_another_package_is_saved_with_the_pipeline(tmp_path, kind, monkeypatch):
    folder = write_lm(tmp_path / "lm", kind)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo_lm", config={"path": str(folder)})
    expected = nlp("I like eggs")._.elmo_perplexity

    nlp.to_disk(tmp_path / "saved")

    assert spacy.load(tmp_path / "saved")("I like eggs")._.elmo_perplexity == expected
    loaded = load_language_model(CheckpointFiles(folder)).model.softmax
    assert isinstance(loaded, Wide) and loaded.kind == kind
    assert loaded.clusters.tolist() == [2, 1, 0]
    # The package is gone.
    monkeypatch.undo()
    with pytest.raises(ValueError, match=f"EL112.*'{kind}'.*another package"):
        load_language_model(CheckpointFiles(folder))


def stored_rows(words, width=4, n_rows=2):
    state = {"weight": torch.ones(n_rows, width), "bias": torch.ones(n_rows)}
    return SoftmaxWeights("full", {}, state, words)


def test_rows_of_common_words_are_copied():
    softmax = Softmax(4, 3)
    before = softmax.weight.clone()
    assert copy_softmax_rows(softmax, ["a", "b", "c"], stored_rows(["d", "e"])) == 0
    assert torch.equal(softmax.weight, before)
    assert copy_softmax_rows(softmax, ["a", "b", "c"], stored_rows(["c", "d"])) == 1
    assert softmax.weight[2].tolist() == [1.0] * 4 and (softmax.weight[:2] != 1).any()
    for width, n_rows in ((4, 1), (5, 2)):
        with pytest.raises(ValueError, match="EL021.*the stored softmax"):
            copy_softmax_rows(softmax, ["a", "c"], stored_rows(["c", "d"], width, n_rows))
