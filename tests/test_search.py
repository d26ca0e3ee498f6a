"""Semantic search: vectors of sentences, the index on disk, and its search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.embedder import Embedder
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.search import backends
from spacy_elmo.search.backends import search_arrays
from spacy_elmo.search.encoder import WEIGHTINGS, SentenceEncoder, Transform, fit_transform
from spacy_elmo.search.index import SearchIndex, read_meta

from .helpers import SHAPE

SENTENCES = [
    ["green", "eggs"],
    ["ham"],
    ["I", "like", "ham", "and", "eggs"],
    ["Ham", "ham"],
    ["the", "the", "river"],
]


def create(folder, embedder, **changes):
    settings = {"layer": 1, "weighting": "mean", "backend": "numpy", "lang": "en", **changes}
    return SearchIndex.create(folder, embedder, **settings)


def texts(hits):
    return [hit.words for hit in hits]


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
    for few in (fit_transform(X, "mean"), fit_transform(X[:5], "whitened")):
        np.testing.assert_array_equal((X - few.centre) @ few.matrix, X)


@given(st.lists(st.integers(0, 7), min_size=1, max_size=4), st.integers(1, 9), st.integers(0, 9))
def test_search_is_that_of_a_full_sort(sizes, n, seed):
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(-2, 3, (size, 3)).astype("float32") for size in sizes]
    query = rng.integers(-2, 3, 3).astype("float32")
    scores = np.concatenate(arrays) @ query
    expected = sorted(range(len(scores)), key=lambda row: (-scores[row], row))[:n]

    found = search_arrays(arrays, query, n)

    assert [row for row, _ in found] == expected
    assert [score for _, score in found] == [scores[row] for row in expected]


@pytest.mark.parametrize("backend", backends.BACKENDS)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_a_sentence_finds_itself(embedder, tmp_path, backend, weighting):
    index = create(tmp_path / "x", embedder, backend=backend, weighting=weighting, layer=0)
    index.add("toy", SENTENCES)

    reopened = SearchIndex.open(tmp_path / "x", embedder)

    for i, words in enumerate(SENTENCES):
        first = reopened.search(words, n=2)[0]
        assert first.words == words and first.number == i + 1 and first.source == "toy"
        assert first.score == pytest.approx(1.0, abs=1e-4)
        assert 0 <= first.nearest < len(words)
        assert reopened.search(words, n=99) == index.search(words, n=99)


def test_both_backends_rank_alike(embedder, tmp_path):
    one, other = (create(tmp_path / name, embedder, backend=name) for name in backends.BACKENDS)
    for index in (one, other):
        index.add("a", SENTENCES[:2])
        index.add("b", SENTENCES[2:])

    assert texts(one.search(["ham", "eggs"])) == texts(other.search(["ham", "eggs"]))


@pytest.mark.parametrize("backend", backends.BACKENDS)
def test_sources_are_added_passed_over_and_replaced(embedder, tmp_path, backend):
    index = create(tmp_path / "x", embedder, backend=backend)

    assert index.add("a", SENTENCES[:2]) == 2
    assert index.add("b", [[], *SENTENCES[2:]]) == 3
    assert index.add("a", SENTENCES[:2]) == 0
    assert len(index.search(["ham"], n=99)) == 5
    assert index.add("a", [["tea"]]) == 1

    index = create(tmp_path / "x", embedder, backend=backend)
    assert {hit.source for hit in index.search(["ham"], n=99)} == {"a", "b"}
    assert ["tea"] in texts(index.search(["ham"], n=99))
    assert SENTENCES[0] not in texts(index.search(["ham"], n=99))
    # Files of what was replaced are gone.
    assert len(list((tmp_path / "x").glob("*.npy"))) == 2


@pytest.mark.parametrize("backend", backends.BACKENDS)
def test_files_of_others_stay_and_sources_can_go(embedder, tmp_path, backend):
    for name in ("corpus.jsonl", "mine.npy", "mine.faiss"):
        (tmp_path / name).write_text("mine")
    index = create(tmp_path, embedder, backend=backend)
    index.add("a", SENTENCES)
    index.add("b", [["tea"]])

    index.remove("a")
    index.remove("unknown")

    assert texts(SearchIndex.open(tmp_path, embedder).search(["ham"])) == [["tea"]]
    assert all((tmp_path / n).read_text() == "mine" for n in ("corpus.jsonl", "mine.faiss"))
    index.remove("b")
    assert SearchIndex.open(tmp_path, embedder).search(["ham"]) == []
    assert len(list(tmp_path.glob("*.npy"))) == len(list(tmp_path.glob("*.faiss"))) == 1


def test_layers_are_named_one_way(embedder, tmp_path):
    create(tmp_path / "x", embedder, layer=-1).add("a", SENTENCES)

    assert create(tmp_path / "x", embedder, layer=2).meta["layer"] == 2
    with pytest.raises(ValueError, match="EL017.*layer = 3"):
        create(tmp_path / "y", embedder, layer=3)


def test_what_is_added_later_is_weighed_as_before(embedder, tmp_path):
    index = create(tmp_path / "x", embedder, weighting="sif")
    index.add("a", SENTENCES)
    before = index.search(["ham"], n=1)[0]

    index.add("b", [["the"] * 50])

    assert index.encoder.counts["the"] == 2
    assert index.search(["ham"], n=1)[0] == before


@pytest.mark.parametrize("backend", backends.BACKENDS)
def test_a_broken_run_leaves_the_index_as_it_was(embedder, tmp_path, monkeypatch, backend):
    index = create(tmp_path / "x", embedder, backend=backend)
    index.add("a", SENTENCES)
    expected = index.search(["ham"], n=99)

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("spacy_elmo.search.index.write_json", fail)
    with pytest.raises(OSError, match="disk full"):
        index.add("b", [["tea"]])

    assert SearchIndex.open(tmp_path / "x", embedder).search(["ham"], n=99) == expected


def test_what_cannot_be_searched_is_said(embedder, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="EL043"):
        read_meta(tmp_path)
    with pytest.raises(ValueError, match="EL017.*weighting"):
        create(tmp_path / "x", embedder, weighting="best")
    index = create(tmp_path / "x", embedder)
    with pytest.raises(ValueError, match="EL094"):
        index.add("a", [[]])
    index.add("a", SENTENCES)
    with pytest.raises(ValueError, match="EL046"):
        index.search([])
    with pytest.raises(ValueError, match="EL044.*layer = 1, not 0"):
        create(tmp_path / "x", embedder, layer=0)
    with pytest.raises(ValueError, match="EL044.*biLM"):
        SearchIndex.open(tmp_path / "x", Embedder(BiLM(BiLMConfig(**SHAPE))))
    monkeypatch.setattr(backends, "faiss", None)
    with pytest.raises(ValueError, match="EL045"):
        create(tmp_path / "y", embedder, backend="faiss").add("a", SENTENCES)


def test_the_nearest_word_is_found(embedder):
    encoder = SentenceEncoder(embedder, 0, transform=Transform(np.zeros(8), np.eye(8)))
    query = encoder.encode([["river"]])[0]

    assert encoder.find_token(["the", "river", "the"], query) == 1
