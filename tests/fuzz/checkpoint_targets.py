"""Checkpoints of each format."""

from pathlib import Path

import numpy as np

from spacy_elmo.checkpoints.checkpoint_files import CheckpointFiles
from spacy_elmo.checkpoints.formats import find_reader, read_bilm
from spacy_elmo.checkpoints.native import read_meta
from spacy_elmo.files import DIGESTS_FILE
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.language_model.loading import load_language_model

from ..checkpoints.test_damage import WORDS, make_folder
from ..support.toy import make_options, make_weights, write_model
from .mutation import bundle, unbundle
from .target import Job, read_folder, write_files

# Without digests, as older ones: with them, next to nothing comes past the first check.
_WITHOUT = (DIGESTS_FILE,)


def native(folder: Path) -> Job:
    """Our own folders, with a softmax."""
    kinds = ("native", "adaptive", "words")
    seeds = [read_folder(make_folder(folder / kind, kind), without=_WITHOUT) for kind in kinds]
    return Job([bundle(files) for files in seeds], lambda data: _load(folder / "x", data))


def allennlp(folder: Path) -> Job:
    """options.json and HDF5 files: characters with a softmax, one layer, words."""
    make_folder(folder / "characters", "allennlp")
    options = make_options(n_layers=1)
    write_model(folder / "one_layer", options, make_weights(options))
    write_words(folder / "words")
    seeds = [read_folder(path, without=_WITHOUT) for path in sorted(folder.iterdir())]
    return Job([bundle(files) for files in seeds], lambda data: _load(folder / "x", data))


def write_words(folder: Path) -> None:
    """A model that reads words: no char_cnn, an embedding, a vocabulary."""
    options = make_options()
    weights = make_weights(options)
    weights = {name: array for name, array in weights.items() if name.startswith("RNN")}
    n_words, width = len(WORDS), options["lstm"]["projection_dim"]
    weights["embedding"] = np.ones((n_words, width), dtype="float32")
    write_model(folder, {"lstm": options["lstm"]}, weights)
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS))


def _load(folder: Path, data: bytes) -> None:
    write_files(folder, unbundle(data))
    read_meta(folder)
    files = CheckpointFiles(folder)
    Embedder(read_bilm(files)).embed([["green", "eggs"], ["x" * 50]])
    if find_reader(files).read_softmax(files) is not None:
        load_language_model(files)
