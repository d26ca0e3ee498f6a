"""The paths of the engine compared with the plain network."""

import copy

import numpy as np
import pytest
import torch

from spacy_elmo import load_embedder
from spacy_elmo.bilm.batch import WordBatch
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.lstm import BiLMState
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.inference import engine as inference
from spacy_elmo.inference import packed_layers
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.inference.engine import InferenceEngine
from spacy_elmo.inference.packed_layers import TorchLSTM, require_precision

from ..support import oracle
from ..support.helpers import SHAPE, assert_close
from ..support.toy import make_options, make_weights, write_model


def make_sentences(seed, n_sentences=12, longest=30):
    rng = np.random.default_rng(seed)
    words = ["<S>", "", "é", *(f"w{i}" * (1 + i % 7) for i in range(60))]
    lengths = rng.integers(1, longest, n_sentences)
    return [[words[i] for i in rng.integers(0, len(words), n)] for n in lengths]


@pytest.fixture(params=[False, True], ids=["plain", "packed"])
def packing(request, monkeypatch):
    """Small products are not packed; with True they are."""
    if request.param:
        monkeypatch.setattr(packed_layers, "_LEAST_PACKED", 0)


@pytest.mark.parametrize("seed", range(8))
def test_random_shapes_equal_the_oracle(tmp_path, packing, monkeypatch, seed):
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
    sentences = make_sentences(seed)

    expected = [oracle.embed(options, weights, words)[0] for words in sentences]

    with pytest.warns(UserWarning, match="WL003"):
        assert_close(embedder.embed(sentences), expected, 1e-5)


LENGTHS = np.array([3, 90, 17, 3, 40, 5, 5, 5, 60])


def make_random_batch(n_words):
    """Random words between boundaries: 0 begins, 1 ends a sequence."""
    word_ids = np.random.default_rng(0).integers(0, n_words, int(LENGTHS.sum()))
    ends = np.cumsum(LENGTHS)
    word_ids[ends - 1], word_ids[ends - LENGTHS] = 1, 0
    return WordBatch(["<S>", "</S>", *map(str, range(n_words))], word_ids, LENGTHS)


def run_module(bilm, X, state):
    """All layers of word vectors with their boundaries, sequence by sequence."""
    layers, after = [], BiLMState(*(torch.empty_like(part) for part in state))
    for k, vectors in enumerate(X.split(LENGTHS.tolist())):
        halves = []
        for direction, stack in enumerate((bilm.forward_lstm, bilm.backward_lstm)):
            before = [(h[direction, k, None], c[direction, k, None]) for h, c in zip(*state)]
            read = vectors.flip(0) if direction else vectors
            outputs, finals = stack(read, [1] * len(vectors), before)
            halves.append([Y.flip(0) if direction else Y for Y in (read, *outputs)])
            for layer, final in enumerate(finals):
                after.hidden[layer, direction, k], after.cell[layer, direction, k] = final
        layers.append(torch.stack([torch.cat(pair, dim=1) for pair in zip(*halves)], dim=1)[1:-1])
    return torch.cat(layers), after


@pytest.mark.parametrize("n_words", [20, 400], ids=["words repeated", "words not repeated"])
@pytest.mark.parametrize("changes", [{}, {"cell_clip": 0.1, "proj_clip": 0.05}, {"depth": 1}])
@pytest.mark.parametrize("n_threads", [1, 5])
@pytest.mark.parametrize("n_few", [0, 2**15], ids=["all in threads", "planned in the caller"])
@pytest.mark.parametrize("has_state", [False, True])
def test_the_engine_equals_the_module(
    packing, monkeypatch, n_words, changes, n_threads, n_few, has_state
):
    monkeypatch.setattr(inference, "_LEAST_ROWS", 3)
    monkeypatch.setattr(inference, "_FEW_NUMBERS", n_few)
    bilm = BiLM(BiLMConfig(**{**SHAPE, **changes})).requires_grad_(False)
    engine = InferenceEngine(bilm)
    vectors = torch.cat([engine.encode(["<S>", "</S>"]), torch.randn(n_words, 4)])
    batch = make_random_batch(n_words)
    monkeypatch.setattr(engine, "find_vectors", lambda words, n_threads: vectors)
    n_tokens = int(LENGTHS.sum()) - 2 * len(LENGTHS)
    zero = bilm.zero_state(9)
    state = BiLMState(*map(torch.randn_like, zero)) if has_state else None

    # Into every second row, backwards.
    layers, rows = torch.zeros(2 * n_tokens, engine.config.n_layers, 8), np.arange(n_tokens)
    after = engine.contextualize(batch, layers, 2 * rows[::-1], state, n_threads=n_threads)

    expected, expected_after = run_module(bilm, vectors[batch.word_ids], state or zero)
    assert_close([layers[::2].flip(0)], [expected], 1e-6)
    assert (layers[1::2] == 0).all()
    if has_state:
        assert_close([*after], [*expected_after], 1e-6)


@pytest.mark.parametrize("settings, precision, is_used", [
    ({}, "fp32", True), ({"cell_clip": 3.0}, "fp32", False), ({"proj_clip": 3.0}, "fp32", False),
    ({}, "int8", False), ({"cell_width": 4}, "fp32", False),
    ({"cell_width": 4, "projection": False}, "fp32", True),
])  # fmt: skip
def test_one_sequence_is_read_by_torchs_lstm(monkeypatch, settings, precision, is_used):
    """But not where that computes something else, or rounds otherwise than a batch does."""
    try:
        require_precision(precision, "cpu")
    except ValueError:
        pytest.skip("not on this machine")
    calls = []
    run = TorchLSTM.__call__
    monkeypatch.setattr(
        TorchLSTM, "__call__", lambda self, *args: calls.append(args) or run(self, *args)
    )
    bilm = BiLM(BiLMConfig(**{**SHAPE, **settings}))
    embedder = Embedder(bilm, precision=precision, n_threads=1)
    sentences = [["I", "like", "eggs"], ["ham"], ["green", "eggs", "and", "ham", "."]]
    alone = [embedder.embed([words])[0] for words in sentences]

    assert bool(calls) == is_used
    calls.clear()
    assert_close(embedder.embed(sentences), alone, 1e-5)
    assert not calls


@pytest.mark.parametrize("clip", [None, 0.1])
def test_the_layers_of_a_gpu_equal_those_of_a_processor(clip):
    """They are torch's LSTM, or plain layers if there are clips."""
    lstm = BiLM(BiLMConfig(**SHAPE, cell_clip=clip)).requires_grad_(False).forward_lstm
    stack, other = (inference.InferenceStack(lstm, "fp32") for _ in range(2))
    meta = inference.InferenceStack(copy.deepcopy(lstm).to("meta"), "fp32")
    has_torch = isinstance(meta.layers[0], TorchLSTM)
    assert has_torch == (clip is None)
    other.layers = [
        TorchLSTM(layer, torch.float32) if has_torch else layer for layer in lstm.layers
    ]
    vectors, ids = torch.randn(9, 4), torch.arange(9)
    states = [(torch.randn(4, 4), torch.randn(4, 6)) for _ in range(2)]

    for (Y, final), (Z, expected) in zip(
        other(vectors, ids, [4, 4, 1], states), stack(vectors, ids, [4, 4, 1], states), strict=True
    ):
        assert_close([Y, *final], [Z[:9], *expected], 1e-6)


def test_layers_above_the_wanted_one_are_not_computed(monkeypatch):
    embedder = Embedder(BiLM(BiLMConfig(**{**SHAPE, "max_chars": 50})), n_threads=2)
    computed = []
    call = inference.InferenceStack.__call__

    def count(self, *args):
        for output in call(self, *args):
            computed.append(output)
            yield output

    embedder.prepare()
    monkeypatch.setattr(inference.InferenceStack, "__call__", count)
    for layer in range(3):
        for sentences in (make_sentences(0, 1), make_sentences(0)):
            embedder.embed_layer(sentences, layer)
            assert len(computed) == 2 * layer
            computed.clear()
