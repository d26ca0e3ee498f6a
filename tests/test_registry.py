"""Released names, as data: removing or renaming one fails here."""

from importlib.metadata import entry_points

import catalogue
import pytest
import spacy

from spacy_elmo.checkpoints.files import CheckpointFiles
from spacy_elmo.checkpoints.reader import CheckpointReader, find_reader
from spacy_elmo.registry import checkpoint_readers

NAMES = {
    "spacy_factories": ["elmo", "elmo_lm", "elmo_senses"],
    "spacy_architectures": [
        "spacy-elmo.Elmo.v1",
        "spacy-elmo.ElmoListener.v1",
        "spacy-elmo.ElmoTok2Vec.v1",
    ],
    "spacy_misc": [
        "spacy-elmo.ActivationCache.v1",
        "spacy-elmo.AllenNLPLoader.v1",
        "spacy-elmo.BundledLoader.v1",
        "spacy-elmo.CheckpointLoader.v1",
        "spacy-elmo.RandomLoader.v1",
        "spacy-elmo.sentence_spans.v1",
        "spacy-elmo.window_spans.v1",
    ],
    "spacy_cli": ["elmo"],
    "spacy_loggers": ["spacy-elmo.WeightsLogger.v1"],
    "spacy_elmo_checkpoint_readers": ["allennlp", "native"],
    "spacy_elmo_corpus_readers": ["jsonl", "spacy", "txt"],
    "spacy_elmo_softmaxes": ["adaptive", "full", "sampled"],
    "spacy_elmo_teachers": ["static_vectors"],
}


@pytest.mark.parametrize("group, names", NAMES.items(), ids=NAMES)
def test_released_names_are_declared(group, names):
    ours = [e for e in entry_points(group=group) if e.value.startswith("spacy_elmo.")]

    assert sorted(e.name for e in ours) == names
    for entry in ours:
        assert entry.load() is not None


@pytest.mark.parametrize("name", NAMES["spacy_architectures"])
def test_spacy_finds_our_architectures(name):
    assert spacy.registry.architectures.get(name)


def test_others_can_add_a_format(tmp_path):
    reader = CheckpointReader(lambda files: files.path.suffix == ".toy", None, None, None)
    (tmp_path / "model.toy").touch()
    checkpoint_readers.register("toy", func=reader)
    try:
        assert find_reader(CheckpointFiles(tmp_path / "model.toy")) is reader
    finally:
        catalogue._remove(("spacy_elmo", "checkpoint_readers", "toy"))
