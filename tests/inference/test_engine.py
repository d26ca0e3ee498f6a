"""The fast paths, held against the module and the NumPy oracle."""

import copy
import pickle
import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo import load_embedder
from spacy_elmo.bilm.batch import WordBatch, make_batch
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.lstm import BiLMState, LSTMLayer
from spacy_elmo.bilm.model import BiLM, make_inputs
from spacy_elmo.inference import engine as inference
from spacy_elmo.inference import packed_layers as packed_linear
from spacy_elmo.inference import torch_lstm as single_lstm
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.inference.engine import InferenceEngine
from spacy_elmo.inference.packed_layers import MOST_ROUNDING, round_rows
from spacy_elmo.inference.threads import Stopped
from spacy_elmo.inference.torch_lstm import FusedLayer, SingleLayer, SteppedLayer

from ..support import oracle
from ..support.helpers import SHAPE, assert_close
from ..support.packed_oracle import run_packed
from ..support.toy import make_options, make_weights, write_model


def make_sentences(seed, n_sentences=12, longest=30):
    rng = np.random.default_rng(seed)
    words = ["<S>", "", "é", *(f"w{i}" * (1 + i % 7) for i in range(60))]
    lengths = rng.integers(0, longest, n_sentences)
    return [[words[i] for i in rng.integers(0, len(words), n)] for n in lengths]


@pytest.fixture(params=[False, True], ids=["plain", "packed"])
def packing(request, monkeypatch):
    """Small products go to the BLAS; have them packed."""
    if request.param:
        monkeypatch.setattr(packed_linear, "_LEAST_PACKED", 0)


@pytest.fixture(scope="module")
def bilm():
    torch.manual_seed(0)
    shape = {
        **SHAPE,
        "width": 64,
        "cell_width": 48,
        "max_chars": 50,
        "filters": [[1, 8], [3, 16], [5, 8]],
    }
    return BiLM(BiLMConfig(**shape)).requires_grad_(False)


@pytest.mark.parametrize("seed", range(8))
def test_embed_equals_the_oracle_for_random_shapes(tmp_path, packing, monkeypatch, seed):
    monkeypatch.setattr(inference, "_LEAST_ROWS", 2)
    rng = np.random.default_rng(seed)
    clip = float(rng.choice([0.1, 3.0]))
    options = make_options(
        projection_dim=int(rng.integers(3, 40)),
        dim=int(rng.integers(40, 70)),
        n_layers=int(rng.integers(1, 4)),
        cell_clip=clip,
        proj_clip=clip,
        activation=str(rng.choice(["relu", "tanh"])),
        n_highway=int(rng.integers(0, 3)),
        filters=[[int(rng.integers(1, 8)), int(rng.integers(1, 20))] for _ in range(3)],
        use_skip_connections=bool(rng.integers(2)),
    )
    # With larger weights the recurrence is chaotic: it multiplies float noise.
    weights = make_weights(options, seed=seed, scale=0.15)
    embedder = load_embedder(*write_model(tmp_path, options, weights))
    embedder.n_threads = int(rng.integers(1, 7))
    sentences = [words for words in make_sentences(seed) if words]

    expected = [oracle.embed(options, weights, words)[0] for words in sentences]

    with pytest.warns(UserWarning, match="WL003"):
        assert_close(embedder.embed(sentences), expected, 1e-5)


LENGTHS = np.array([3, 90, 17, 3, 40, 5, 5, 5, 60])


def make_random_batch(n_words, lengths=LENGTHS):
    """Random words between boundaries: 0 begins, 1 ends a sequence."""
    word_ids = np.random.default_rng(0).integers(0, n_words, int(lengths.sum()))
    ends = np.cumsum(lengths)
    word_ids[ends - 1], word_ids[ends - lengths] = 1, 0
    return WordBatch(["<S>", "</S>", *map(str, range(n_words))], word_ids, lengths)


@pytest.mark.parametrize("n_words", [20, 400], ids=["words repeated", "words not repeated"])
@pytest.mark.parametrize("changes", [{}, {"cell_clip": 0.1, "proj_clip": 0.05}, {"depth": 1}])
@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_engine_equals_the_module(packing, monkeypatch, n_words, changes, n_threads):
    monkeypatch.setattr(inference, "_LEAST_ROWS", 3)
    bilm = BiLM(BiLMConfig(**{**SHAPE, **changes})).requires_grad_(False)
    engine = InferenceEngine(bilm)
    vectors = torch.cat([engine.encode(["<S>", "</S>"]), torch.randn(n_words, 4)])
    batch = make_random_batch(n_words)
    monkeypatch.setattr(engine, "find_vectors", lambda words, n_threads: vectors)

    n_tokens = int(LENGTHS.sum()) - 2 * len(LENGTHS)
    # Into every second row, backwards.
    layers, rows = torch.zeros(2 * n_tokens, engine.config.n_layers, 8), np.arange(n_tokens)
    engine.contextualize(batch, layers, 2 * rows[::-1], n_threads=n_threads)

    expected, _ = bilm.contextualize(vectors[batch.word_ids], LENGTHS, keep_state=False)
    assert_close([layers[::2].flip(0)], [expected], 1e-6)
    assert (layers[1::2] == 0).all()


@pytest.mark.parametrize("n_words", [20, 400], ids=["words repeated", "words not repeated"])
@pytest.mark.parametrize("n_threads", [1, 5])
def test_engine_equals_the_module_with_state(packing, monkeypatch, n_words, n_threads):
    monkeypatch.setattr(inference, "_LEAST_ROWS", 3)
    bilm = BiLM(BiLMConfig(**SHAPE)).requires_grad_(False)
    vectors, batch = torch.randn(n_words, 4), make_random_batch(n_words)
    state = BiLMState(*(torch.randn_like(part) for part in bilm.zero_state(9)))

    engine = InferenceEngine(bilm)
    monkeypatch.setattr(engine, "find_vectors", lambda words, n_threads: vectors)

    layers, after = engine.contextualize_stateful(batch, state, n_threads=n_threads)

    expected, expected_after = bilm.contextualize(vectors[batch.word_ids], LENGTHS, state)
    assert_close([layers, *after], [expected, *expected_after], 1e-6)


def test_encode_equals_the_module(packing, bilm):
    words = [f"w{i}" * (i % 9) for i in range(700)]

    found = InferenceEngine(bilm).encode(words, n_threads=2)

    expected = make_inputs(bilm, words)
    assert_close([found], [torch.cat([bilm.encode(p) for p in expected[0]])[expected[1]]], 1e-5)


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_rows_are_rounded_up_in_order(a, b):
    assert a <= round_rows(a) < a + MOST_ROUNDING
    assert (round_rows(a) <= round_rows(b)) if a <= b else True
    assert round_rows(round_rows(a)) == round_rows(a)


def test_kernels_are_few():
    assert len({round_rows(n) for n in range(1, 400)}) < 30


# ---- precision


def run_exactly(bilm, sentences):
    """Layers by the torch module, in float64, shape (n_tokens, n_layers, width)."""
    bilm, batch = copy.deepcopy(bilm).double(), make_batch(sentences)
    (inputs,), back = make_inputs(bilm, batch.words)
    X = bilm.encode(inputs)[back][torch.from_numpy(batch.word_ids)]
    return bilm.contextualize(X, batch.lengths, keep_state=False)[0].numpy()


@pytest.mark.parametrize(
    "precision, least, cosine",
    [
        ("fp32", 0.0, 1 - 1e-10),
        ("bf16", 1e-4, 0.999),
        ("fp16", 1e-5, 0.9999),
        ("int8", 1e-4, 0.99),
    ],
)
def test_precisions_agree_with_float64_or_are_refused(bilm, precision, least, cosine):
    embedder = Embedder(bilm, precision=precision)
    sentences = [words for words in make_sentences(1) if words]
    try:
        packed_linear.require_precision(precision, "cpu")
    except ValueError:
        with pytest.raises(ValueError, match=f"EL016.*{precision}"):
            embedder.embed(sentences)
        return

    exact = run_exactly(bilm, sentences).reshape(-1, 64)
    arrays = [array.transpose(1, 0, 2) for array in embedder.embed(sentences)]
    found = np.concatenate(arrays).reshape(-1, 64).astype("float64")

    norms = np.linalg.norm(exact, axis=1) * np.linalg.norm(found, axis=1)
    assert ((exact * found).sum(axis=1) / norms).min() > cosine
    # Float noise alone with float32; with the others more, or they were not taken.
    assert least < abs(exact - found).max() < (1e-5 if precision == "fp32" else 0.5)


def test_bad_settings_are_refused(bilm):
    with pytest.raises(ValueError, match="EL017.*precision = 'int4'.*fp32, bf16"):
        Embedder(bilm, precision="int4")
    with pytest.raises(ValueError, match="EL012.*n_threads = -1"):
        Embedder(bilm, n_threads=-1)


# ---- threads


def test_results_do_not_depend_on_threads(bilm, monkeypatch):
    monkeypatch.setattr(inference, "_LEAST_ROWS", 1)
    sentences = make_sentences(2, n_sentences=40)
    expected = Embedder(bilm, n_threads=1).embed(sentences)

    for n_threads in (2, 3, 8):
        assert_close(Embedder(bilm, n_threads=n_threads).embed(sentences), expected, 1e-6)


def test_many_callers_at_once(bilm):
    embedder = Embedder(bilm, n_threads=2)
    texts = [make_sentences(seed) for seed in range(6)]
    expected = [Embedder(bilm).embed(sentences) for sentences in texts]
    found = [None] * len(texts)

    def embed(i):
        found[i] = embedder.embed(texts[i])

    threads = [threading.Thread(target=embed, args=(i,)) for i in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for arrays, wanted in zip(found, expected):
        assert_close(arrays, wanted, 1e-6)


# ---- copies


def test_an_array_has_memory_of_its_own(bilm):
    arrays = Embedder(bilm).embed([["a"], ["b"] * 20])

    assert all(array.base is None or array.base.nbytes == array.nbytes for array in arrays)


def test_what_was_read_with_old_weights_is_forgotten(bilm):
    embedder = Embedder(copy.deepcopy(bilm))
    engine = embedder._get_engine()
    with torch.no_grad():
        embedder.bilm.char_cnn.projection.weight.mul_(2)
    embedder.set_ready()

    # A thread that is still at work with the old engine.
    engine.find_vectors(["a"])

    expected = Embedder(embedder.bilm).embed([["a"]])
    assert_close(embedder.embed([["a"]]), expected, 0)


def test_after_an_update_weights_are_packed_once(bilm):
    embedder = Embedder(copy.deepcopy(bilm).requires_grad_(True))
    embedder(make_batch([["a"]]))
    embedder.embed([["a"]])
    assert len(embedder.word_cache) == 0

    embedder.settle()
    embedder.embed([["a"]])

    assert len(embedder.word_cache) == 3


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_weights_of_another_type_are_read_as_float32(bilm, dtype):
    words = [["a", "b"]]
    expected = Embedder(bilm).embed(words)
    embedder = Embedder(copy.deepcopy(bilm).to(dtype))

    assert_close(embedder.embed(words), expected, 1e-6 if dtype == torch.float64 else 1e-2)
    state = embedder.embed_stateful(words)[1]
    assert_close(embedder.embed_stateful(words, state)[0], embedder.embed_stateful(words, state)[0])


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_an_embedder_in_use_can_be_copied(bilm, copier):
    embedder = Embedder(bilm)
    expected = embedder.embed(make_sentences(3))

    assert_close(copier(embedder).embed(make_sentences(3)), expected, 0)


# ---- torch's own LSTM, for one sequence


@pytest.mark.parametrize("projection", [True, False])
@pytest.mark.parametrize("n_steps", [1, 7, 8, 20])
def test_one_sequence_equals_the_oracle(monkeypatch, projection, n_steps):
    monkeypatch.setattr(single_lstm, "_MOST_STEPS", 8)
    width = 6 if projection else 4
    shape = {**SHAPE, "cell_width": width, "projection": projection}
    layer = LSTMLayer(BiLMConfig(**shape)).requires_grad_(False)
    X, state = torch.randn(n_steps, 4), (torch.randn(1, 4), torch.randn(1, width))

    Y, last = SingleLayer(layer)(X, [1] * n_steps, state)

    assert_close([Y, *last], run_packed(layer, X, [1] * n_steps, state), 1e-6)


@pytest.mark.parametrize("settings, precision, is_used", [
    ({}, "fp32", True), ({"cell_clip": 3.0}, "fp32", False), ({"proj_clip": 3.0}, "fp32", False),
    ({}, "int8", False), ({"cell_width": 3}, "fp32", True), ({"cell_width": 4}, "fp32", False),
    ({"cell_width": 4, "projection": False}, "fp32", True),
])  # fmt: skip
def test_one_sequence_is_read_by_torchs_lstm(monkeypatch, settings, precision, is_used):
    """But not where that computes something else, or rounds otherwise than a batch does."""
    calls = []
    run = SingleLayer.__call__
    monkeypatch.setattr(
        SingleLayer, "__call__", lambda self, *args: calls.append(args) or run(self, *args)
    )
    bilm = BiLM(BiLMConfig(**{**SHAPE, **settings}))
    embedder = Embedder(bilm, precision=precision, n_threads=1)
    sentences = [["I", "like", "eggs"], ["ham"], ["green", "eggs", "and", "ham", "."]]
    alone = [embedder.embed([words])[0] for words in sentences]

    # A boundary is a sequence of its own, read once by each direction.
    assert bool(calls) == is_used
    calls.clear()
    assert_close(embedder.embed(sentences), alone, 1e-5)
    assert not calls


def test_an_interrupt_is_heard_within_a_long_sequence(monkeypatch):
    monkeypatch.setattr(single_lstm, "_MOST_STEPS", 1)

    def raise_stopped():
        raise Stopped

    layer = LSTMLayer(BiLMConfig(**SHAPE)).requires_grad_(False)
    monkeypatch.setattr(single_lstm, "raise_if_stopped", raise_stopped)
    with pytest.raises(Stopped):
        SingleLayer(layer)(torch.randn(3, 4), [1] * 3, (torch.zeros(1, 4), torch.zeros(1, 6)))


# ---- torch's own LSTM, for a GPU


@pytest.mark.parametrize(
    "make, clip", [(FusedLayer, None), (SteppedLayer, None), (SteppedLayer, 0.1)]
)
@pytest.mark.parametrize("projection", [True, False])
def test_layers_for_a_gpu_equal_the_oracle(make, clip, projection):
    width = 6 if projection else 4
    shape = {**SHAPE, "cell_width": width, "projection": projection}
    layer = LSTMLayer(BiLMConfig(**shape, cell_clip=clip, proj_clip=clip)).requires_grad_(False)
    batch_sizes = [5, 5, 3, 1]
    X, state = torch.randn(16, 4), (torch.randn(5, 4), torch.randn(5, width))

    Y, last = make(layer, torch.float32)(X, batch_sizes, state)

    expected = run_packed(layer, X, batch_sizes, state)
    assert_close([Y[:14], *last], expected, 1e-6)
    assert (Y[14:] == 0).all()


@pytest.mark.parametrize("cell_width, projection, clip, made", [
    (6, True, None, FusedLayer), (4, False, None, FusedLayer), (4, True, None, SteppedLayer),
    (3, True, None, SteppedLayer), (6, True, 3.0, SteppedLayer),
])  # fmt: skip
def test_a_gpu_has_torchs_lstm_where_that_can_be_made(cell_width, projection, clip, made):
    shape = {**SHAPE, "cell_width": cell_width, "projection": projection, "cell_clip": clip}
    layer = LSTMLayer(BiLMConfig(**shape)).requires_grad_(False)
    assert type(inference._make_layer(layer.to("meta"), "fp32")) is made


def test_the_layer_that_steps_multiplies_in_its_type():
    layer = LSTMLayer(BiLMConfig(**SHAPE)).requires_grad_(False)
    X, state = torch.randn(6, 4), (torch.randn(3, 4), torch.randn(3, 6))

    Y, last = SteppedLayer(layer, torch.bfloat16)(X, [3, 3], state)

    expected = run_packed(layer, X, [3, 3], state)
    assert {part.dtype for part in (Y, *last)} == {torch.float32}
    assert_close([Y, *last], expected, 0.05)
    assert abs(Y - expected[0]).max() > 1e-5


@pytest.mark.parametrize("n_sentences", [1, 12])
def test_one_layer_is_that_of_all_and_those_above_are_not_computed(bilm, monkeypatch, n_sentences):
    embedder = Embedder(bilm, n_threads=2)
    sentences = make_sentences(3, n_sentences)
    arrays = embedder.embed(sentences)
    computed = []

    def count(self, *args, call=inference.InferenceStack.__call__):
        for output in call(self, *args):
            computed.append(output)
            yield output

    monkeypatch.setattr(inference.InferenceStack, "__call__", count)
    n_layers = bilm.config.n_layers
    for layer in range(-n_layers, n_layers):
        found = embedder.embed_layer(sentences, layer)

        assert len(found) == len(sentences)
        for W, layers in zip(found, arrays):
            np.testing.assert_array_equal(W, layers[layer])
        assert len(computed) == 2 * (layer % n_layers)
        computed.clear()
    assert embedder.embed_layer([[]], 0)[0].shape == (0, bilm.config.width)
    for layer in (n_layers, -n_layers - 1):
        with pytest.raises(ValueError, match="EL017.*layer"):
            embedder.embed_layer(sentences, layer)
