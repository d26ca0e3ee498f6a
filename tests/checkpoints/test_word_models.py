"""bilm-tf's models that read words."""

import json

import h5py
import numpy as np
import pytest

from spacy_elmo import load_embedder

from ..support.helpers import assert_close
from ..support.toy import make_options, make_weights, write_model

WORDS = ["<S>", "</S>", "<UNK>", "ham", "eggs", "and"]


@pytest.fixture
def folder(tmp_path):
    options = make_options()
    weights = make_weights(options)
    rows = np.random.default_rng(0).standard_normal((len(WORDS), 4)).astype("float32")
    kept = {name: array for name, array in weights.items() if name.startswith("RNN")}
    del options["char_cnn"]
    write_model(tmp_path / "words", options, {**kept, "embedding": rows})
    (tmp_path / "words" / "vocab.txt").write_text("\n".join(WORDS))
    return tmp_path / "words"


def test_rows_are_looked_up(folder):
    embedder = load_embedder(folder)

    # Whole: nothing is cut from a long word, and nothing is said of it.
    (layers,) = embedder.embed([["eggs", "and", "spam" * 20]])

    with h5py.File(folder / "weights.hdf5") as file:
        rows = file["embedding"][...]
    expected = rows[[4, 5, 2]]
    np.testing.assert_allclose(layers[0], np.concatenate([expected, expected], axis=1))
    assert embedder.bilm.config.input == "words" and embedder.bilm.config.n_words == 3


def test_the_pair_of_files_finds_the_vocabulary_beside(folder):
    pair = load_embedder(folder / "options.json", folder / "weights.hdf5")

    assert_close(pair.embed([["ham"]]), load_embedder(folder).embed([["ham"]]))


@pytest.mark.parametrize("words", [None, WORDS[3:], ["<S>", "</S>", "ham"]])
def test_a_vocabulary_that_knows_no_unknown_words_is_refused(folder, words):
    (folder / "vocab.txt").unlink()
    if words:
        (folder / "vocab.txt").write_text("\n".join(words))
    with pytest.raises(ValueError, match="EL037.*vocab.txt"):
        load_embedder(folder)


def test_a_vocabulary_of_another_size_is_refused(folder):
    (folder / "vocab.txt").write_text("\n".join([*WORDS, "more"]))
    with pytest.raises(ValueError, match=r"EL021.*embedding.*\(6, 4\).*\(7, 4\)"):
        load_embedder(folder)
    assert json.loads((folder / "options.json").read_text())
