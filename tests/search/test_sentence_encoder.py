"""Vectors of sentences, and the search among them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.search import sentence_encoder
from spacy_elmo.search.sentence_encoder import (
    BACKENDS,
    SentenceEncoder,
    Transform,
    fit_transform,
    search_vectors,
)

from .test_search_index import SENTENCES


def test_the_mean_of_the_words(embedder):
    encoder = SentenceEncoder(embedder, layer=-1)

    X = encoder.encode([*SENTENCES, []])

    for row, layers in zip(X, embedder.embed(SENTENCES)):
        mean = layers[-1].mean(axis=0)
        np.testing.assert_allclose(row, mean / np.linalg.norm(mean), atol=1e-5)
    assert not X[-1].any()


def test_sif_weighs_rare_words_more(embedder):
    counts = {"the": 998, "river": 2}
    (layers,) = embedder.embed([["the", "river"]])
    weights = np.array([1e-3 / (1e-3 + 0.998), 1e-3 / (1e-3 + 0.002)])
    expected = weights @ layers[0] / weights.sum()

    (found,) = SentenceEncoder(embedder, 0, counts).average([["the", "river"]])

    np.testing.assert_allclose(found, expected, atol=1e-5)


@given(st.integers(0, 99))
def test_transforms_do_what_they_say(seed):
    X = np.random.default_rng(seed).standard_normal((40, 6)) @ np.diag([9, 5, 2, 2, 1, 1]) + 3

    common = fit_transform(X, "sif")
    whitened = fit_transform(X, "whitened")
    Y = (X - whitened.centre) @ whitened.matrix

    left = X @ common.matrix
    assert np.linalg.matrix_rank(left, tol=1e-6) == 5
    assert np.linalg.norm(left) < np.linalg.norm(X)
    np.testing.assert_allclose(Y.mean(axis=0), 0, atol=1e-9)
    covariance = Y.T @ Y
    np.testing.assert_allclose(covariance - np.diag(np.diag(covariance)), 0, atol=1e-9)
    assert np.diag(covariance).min() > 0.5 and np.diag(covariance).max() <= 1
    few = [(X, "mean"), (X[:5], "whitened"), (X[:1], "sif")]
    assert [fit_transform(*each) for each in few] == [None] * 3


@given(st.integers(1, 28), st.integers(1, 9), st.integers(0, 9))
@pytest.mark.parametrize("backend", BACKENDS)
def test_search_is_that_of_a_full_sort(backend, size, n, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (size, 3)).astype("float32")
    query = rng.integers(-2, 3, 3).astype("float32")
    scores = X @ query
    expected = sorted(range(size), key=lambda row: (-scores[row], row))[:n]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sentence_encoder, "_N_ROWS", 7)
        found = search_vectors(X, query, n, backend=backend)

    assert [score for _, score in found] == [scores[row] for row in expected]
    assert [score for _, score in found] == [scores[row] for row, _ in found]
    if backend == "numpy":  # faiss keeps any of those that are equal
        assert [row for row, _ in found] == expected


def test_the_nearest_word_is_found(embedder):
    encoder = SentenceEncoder(embedder, 0, transform=Transform(np.zeros(8), np.eye(8)))
    query = encoder.encode([["river"]])[0]

    assert encoder.find_token(["the", "river", "the"], query) == 1
