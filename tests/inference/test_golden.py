"""The bundled biLM against numbers that an independent implementation made of it."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_elmo import load_embedder

from ..support import golden


@pytest.fixture(scope="module")
def fixture():
    arrays = np.load(golden.FIXTURE)
    assert arrays["weights"] == golden.hash_file(golden.WEIGHTS / "model.safetensors"), (
        "The bundled weights were replaced: make the fixture anew, by "
        "`python -m tests.support.golden`."
    )
    return arrays


def require_equal(found, expected):
    """To 5e-5 of the largest number of each layer: one of the sentences has a place at which the
    first LSTM multiplies rounding by 50 to 100, whatever does the arithmetic (torch 2.4 and 2.13,
    with oneDNN and without: 5e-6 to 2.5e-5)."""
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=5e-5 * abs(b).max())


@pytest.mark.parametrize("n_threads", [1, 2])
def test_vectors_of_the_bundled_model(fixture, n_threads):
    embedder = load_embedder()
    embedder.n_threads = n_threads

    arrays = embedder.embed(golden.SENTENCES)

    for i, array in enumerate(arrays):
        require_equal(array, fixture[f"zero_{i}"])


def test_vectors_of_the_bundled_model_in_training(fixture):
    embedder = load_embedder()
    ((members, batch),) = embedder.batches(golden.SENTENCES)

    layers = embedder(batch).detach().numpy().transpose(1, 0, 2)

    ends = np.cumsum([len(golden.SENTENCES[i]) for i in members])[:-1]
    for i, array in zip(members, np.split(layers, ends, axis=1)):
        require_equal(array, fixture[f"zero_{i}"])


def test_vectors_of_the_component(fixture):
    nlp = spacy.blank("en")
    elmo = nlp.add_pipe("elmo", config={"store_layers": True})
    docs = [Doc(nlp.vocab, words=words) for words in golden.SENTENCES]

    for i, doc in enumerate(elmo.pipe(docs)):
        require_equal(doc._.elmo["elmo"]["layers"].transpose(1, 0, 2), fixture[f"zero_{i}"])


def test_numbers_of_other_weights_are_noticed(fixture):
    embedder = load_embedder()
    embedder.bilm.char_cnn.projection.bias.data += 1e-3

    with pytest.raises(AssertionError):
        require_equal(embedder.embed(golden.SENTENCES)[0], fixture["zero_0"])
