"""Layers of a frozen biLM, kept while training."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.checkpoints.loaders import build_random_loader_v1
from spacy_elmo.inference.activation_cache import build_activation_cache_v1
from spacy_elmo.layers.elmo_layers import get_embedder

from ..support.helpers import TEXTS, assert_close, example, make_nlp, vectors


def make_cache(tmp_path=None, **settings):
    path = None if tmp_path is None else str(tmp_path / "cache")
    return build_activation_cache_v1(path=path, **settings)


def open_cache(tmp_path=None, **settings):
    return make_cache(tmp_path, **settings).open(b"weights")


def attach(nlp, cache, seed=0):
    loader = build_random_loader_v1(seed)
    nlp.get_pipe("elmo").initialize(lambda: [example(nlp)], loader=loader, activation_cache=cache)


def get_kept(nlp):
    return get_embedder(nlp.get_pipe("elmo").model).activations()


def count(nlp):
    kept = get_kept(nlp)
    return kept.n_hits, kept.n_misses


@pytest.fixture(params=["memory", "disk"])
def where(request, tmp_path):
    return None if request.param == "memory" else tmp_path


@pytest.mark.parametrize("dtype, atol", [("float32", 1e-5), ("float16", 1e-3)])
def test_vectors_are_the_same_with_it(where, dtype, atol):
    nlp = make_nlp()
    expected = vectors(nlp.pipe(TEXTS))
    attach(nlp, make_cache(where, dtype=dtype))

    first, second = (vectors(nlp.pipe(TEXTS)) for _ in range(2))
    assert count(nlp) == (0, 10)
    third = vectors(nlp.pipe(reversed(TEXTS)))[::-1]

    assert count(nlp) == (5, 10)
    assert_close(first, expected)
    assert_close(third, expected, atol=atol)
    if dtype == "float32":
        for a, b in zip(second, third):
            np.testing.assert_array_equal(a, b)


def test_training_reads_it_and_learns_the_same(where):
    def learn(cache):
        nlp = make_nlp()
        tagger = nlp.add_pipe("tagger", config={"model": {"tok2vec": {
            "@architectures": "spacy-elmo.ElmoListener.v2", "width": 8, "depth": 2,
        }}})  # fmt: skip
        for tag in "AB":
            tagger.add_label(tag)
        docs = [nlp.make_doc(text) for text in TEXTS if text]
        examples = [
            spacy.training.Example.from_dict(doc, {"tags": ["AB"[i % 2] for i in range(len(doc))]})
            for doc in docs
        ]
        optimizer = nlp.initialize(lambda: examples)
        attach(nlp, cache)
        losses = []
        for _ in range(3):
            found = {}
            nlp.update(examples, sgd=optimizer, losses=found)
            losses.append(found["tagger"])
        return losses, nlp

    losses, nlp = learn(make_cache(where))
    assert losses == pytest.approx(learn(None)[0], rel=1e-4)
    n_hits, n_misses = count(nlp)
    assert n_hits == 2 * n_misses > 0


def test_layers_predicted_once_are_not_kept(where):
    nlp = make_nlp()
    attach(nlp, make_cache(where))
    docs = [nlp.make_doc(text) for text in TEXTS]
    nlp.get_pipe("elmo").update([example(nlp, [t.text for t in doc]) for doc in docs[:3:2]])
    kept = get_kept(nlp)
    words = [[t.text for t in doc if not t.is_space] for doc in docs]
    assert [array is not None for array in kept.get(words)] == [True, False, True] + [False] * 3

    list(nlp.pipe(TEXTS))
    assert [array is not None for array in kept.get(words)] == [True, False, True] + [False] * 3
    # As a dev set is.
    list(nlp.pipe(TEXTS))
    assert [array is not None for array in kept.get(words)] == [True, False] + [True] * 4


def test_other_weights_do_not_read_it(where):
    cache = make_cache(where)
    nlp = make_nlp()
    attach(nlp, cache)
    for _ in range(2):
        list(nlp.pipe(TEXTS))
    other = make_nlp(seed=1)
    expected = vectors(other.pipe(TEXTS))

    attach(other, cache, seed=1)

    assert_close(vectors(other.pipe(TEXTS)), expected)
    assert count(other)[0] == 0
    # Nor the same component after it loaded others.
    nlp.get_pipe("elmo").from_bytes(other.get_pipe("elmo").to_bytes())
    assert_close(vectors(nlp.pipe(TEXTS)), expected)


def test_a_file_is_read_by_a_later_run(tmp_path):
    nlp = make_nlp()
    attach(nlp, make_cache(tmp_path))
    for _ in range(2):
        list(nlp.pipe(TEXTS))

    again = make_nlp()
    attach(again, make_cache(tmp_path))
    list(again.pipe(TEXTS))

    assert count(again) == (5, 0)


def test_a_biLM_that_trains_has_none(tmp_path):
    nlp = make_nlp(frozen=False)
    with pytest.raises(ValueError, match="EL018.*frozen = true"):
        attach(nlp, make_cache())
    assert get_embedder(nlp.get_pipe("elmo").model).activations() is None


def test_copies_and_saved_pipelines_have_none(tmp_path):
    nlp = make_nlp()
    attach(nlp, make_cache())
    nlp("eggs")
    elmo = nlp.get_pipe("elmo")
    nlp.to_disk(tmp_path / "nlp")

    models = [
        spacy.load(tmp_path / "nlp").get_pipe("elmo").model,
        pickle.loads(pickle.dumps(elmo)).model,
        copy.deepcopy(elmo.model),
        elmo.model.copy(),
    ]
    for model in models:
        assert get_embedder(model).activations() is None
    assert get_embedder(elmo.model).activations() is not None


@given(st.lists(st.lists(st.text(), max_size=4), max_size=6))
def test_any_words_have_their_own_entry(sequences):
    cache = open_cache()
    distinct = {tuple(words) for words in sequences if words}
    for i, words in enumerate(sorted(distinct)):
        cache.put([words], [np.full((len(words), 3), i, dtype="float32")])

    for i, words in enumerate(sorted(distinct)):
        (array,) = cache.get([words])
        np.testing.assert_array_equal(array, np.full((len(words), 3), i))


def test_it_stays_within_its_budget(where, caplog):
    cache = open_cache(where, megabytes=1)
    array = np.zeros((100, 100), dtype="float32")  # 40 kB
    sequences = [[f"w{i}"] * 100 for i in range(60)]
    for words in sequences:
        cache.put([words], [array])

    kept = sum(found is not None for found in cache.get(sequences))
    assert 10 <= kept <= 25
    # Once, not for each sequence.
    assert caplog.text.count("[WL043]") == 1
    assert "is full (1 MB)" in caplog.text
    if where is not None:
        assert sum(p.stat().st_size for p in (where / "cache").iterdir()) < 3e6


def test_a_file_that_cannot_be_used_is_reported_and_training_continues(tmp_path, caplog):
    folder = tmp_path / "cache"
    open_cache(tmp_path).put([["a"]], [np.ones((1, 3), "float32")])
    (path,) = folder.glob("*.layers")
    path.write_bytes(b"no database" * 1000)

    cache = open_cache(tmp_path)
    cache.put([["a"]], [np.ones((1, 3), "float32")])

    assert caplog.text.count("[WL007]") == 1 and str(path) in caplog.text
    assert cache.get([["a"]]) == [None]


def _fill(folder, first):
    cache = build_activation_cache_v1(path=folder).open(b"weights")
    for i in range(first, first + 60):
        words = [f"w{i}"]
        cache.put([words], [np.full((1, 50), i, dtype="float32")])


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_several_processes_write_the_same_file(tmp_path):
    context = multiprocessing.get_context("spawn")
    folder = str(tmp_path / "cache")
    # They overlap.
    processes = [context.Process(target=_fill, args=(folder, first)) for first in (0, 30)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0

    cache = open_cache(tmp_path)
    found = cache.get([[f"w{i}"] for i in range(90)])
    assert [int(array[0, 0]) for array in found] == list(range(90))


def test_impossible_caches_are_refused():
    with pytest.raises(ValueError, match="EL012.*int8"):
        build_activation_cache_v1(dtype="int8")
    with pytest.raises(ValueError, match="EL012.*megabytes"):
        build_activation_cache_v1(megabytes=-1)
