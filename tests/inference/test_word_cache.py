"""The vectors of the words used last."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo import load_embedder
from spacy_elmo.inference.word_cache import WordCache


def make_vectors(words):
    """A distinct vector of each word."""
    return torch.tensor([[float(ord(word)), -float(ord(word))] for word in words]).reshape(-1, 2)


def look_up(cache, words):
    """As the engine does it. RETURNS the words that were found, all with their vectors."""
    found, vectors, missing = cache.get(words)
    if vectors is not None:
        assert torch.equal(vectors, make_vectors([words[i] for i in found]))
    assert sorted([*found, *missing]) == list(range(len(words)))
    cache.put([words[i] for i in missing], make_vectors([words[i] for i in missing]))
    return [words[i] for i in found]


@given(
    st.integers(0, 6),
    st.lists(st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=8), max_size=12),
)
def test_a_cache_keeps_the_words_used_last(capacity, lookups):
    cache, used = WordCache(capacity), []

    for words in lookups:
        found = look_up(cache, words)

        assert found == [word for word in words if word in used]
        missing = [word for word in words if word not in used][:capacity]
        used = [word for word in used if word not in found] + found
        used = (used + missing)[-capacity:] if capacity else []
        assert len(cache) == len(used)


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])
def test_copies_are_empty(copier):
    cache = WordCache(5)
    look_up(cache, ["a", "b"])

    assert (len(copier(cache)), copier(cache).capacity) == (0, 5)


def test_an_error_while_storing_leaves_no_wrong_word():
    cache = WordCache(4)
    look_up(cache, list("abcd"))

    with pytest.raises(ValueError, match="shape"):
        cache.put(["e", "f"], torch.zeros(2, 3))

    for words in ("abcdef", "ghij", "efab"):
        look_up(cache, list(words))


def test_words_that_another_thread_has_stored_stay():
    cache = WordCache(3)
    cache.put(["a", "b"], make_vectors(["a", "b"]))

    cache.put(["b", "c", "a"], make_vectors(["x", "c", "y"]))

    assert look_up(cache, ["a", "b", "c"]) == ["a", "b", "c"]


def test_words_are_encoded_side_by_side(monkeypatch):
    """Of two threads with new words, none waits until the other's are encoded."""
    engine = load_embedder()._get_engine()
    both = threading.Barrier(2)

    def encode(words, n_threads):
        both.wait(30)
        return torch.zeros(len(words), 128)

    monkeypatch.setattr(engine, "encode", encode)
    with ThreadPoolExecutor(2) as pool:
        shapes = [v.shape for v in pool.map(engine.find_vectors, [["one"], ["two"]])]

    assert shapes == [(1, 128)] * 2
