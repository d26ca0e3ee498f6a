"""The parts of the network: torch, NumPy and finite differences are the oracles.
`acceptance/test_vectors.py` compares the whole."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from spacy_elmo.bilm.char_cnn import run_filters
from spacy_elmo.bilm.config import RANGES, BiLMConfig
from spacy_elmo.bilm.lstm import (
    LSTMLayer,
    has_torch_layer,
    make_torch_weights,
    run_torch_lstm,
)
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.word_table import WordTable
from spacy_elmo.inference.embedder import Embedder

from ..support.helpers import SHAPE, assert_close
from ..support.packed_oracle import run_packed

# ---- convolutions

FILTERS = {
    "rising widths": ((1, 3), (2, 2), (4, 3)),
    "not in order, a width twice": ((3, 2), (1, 3), (3, 1)),
    "as wide as a word": ((9, 4),),
}
N_CHARS, CHAR_WIDTH, PADDING = 9, 4, 11


def make_words(lengths):
    """Character ids of words, padded; one of them has the same character all along."""
    torch.manual_seed(0)
    ids = torch.randint(0, PADDING, (len(lengths), N_CHARS))
    ids[0] = 2
    for row, length in zip(ids, lengths):
        row[length:] = PADDING
    return ids, torch.tensor(lengths)


def make_filters(filters, dtype=torch.float64):
    torch.manual_seed(1)
    embedding = torch.randn(PADDING + 1, CHAR_WIDTH, dtype=dtype, requires_grad=True)
    weights = [torch.randn(n, CHAR_WIDTH, w, dtype=dtype, requires_grad=True) for w, n in filters]
    biases = [torch.randn(n, dtype=dtype, requires_grad=True) for _, n in filters]
    return embedding, weights, biases


def convolve(ids, embedding, weights, biases):
    X = embedding[ids].transpose(1, 2)
    return torch.cat([F.conv1d(X, w, b).amax(dim=2) for w, b in zip(weights, biases)], dim=1)


@pytest.mark.parametrize("filters", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("lengths", [[5, 3, 9, 4, 8, 7], [3], [9, 9]], ids=str)
def test_filters_equal_convolutions(filters, lengths):
    ids, n_used = make_words(lengths)
    embedding, weights, biases = make_filters(filters)

    ours = run_filters(embedding[ids], n_used, embedding[PADDING], weights, biases)
    theirs = convolve(ids, embedding, weights, biases)

    torch.testing.assert_close(ours, theirs)
    factors = torch.randn_like(ours)
    variables = [embedding, *weights, *biases]
    for a, b in zip(*(torch.autograd.grad((Y * factors).sum(), variables) for Y in (ours, theirs))):
        torch.testing.assert_close(a, b)


def test_filters_multiply_in_the_type_of_autocast():
    ids, n_used = make_words([5, 3, 9, 4, 8, 7])
    embedding, weights, biases = make_filters(FILTERS["rising widths"], torch.float32)
    variables = [embedding, *weights, *biases]

    with torch.autocast("cpu", torch.bfloat16):
        ours = run_filters(embedding[ids], n_used, embedding[PADDING], weights, biases)
    theirs = convolve(ids, embedding, weights, biases)

    assert ours.dtype == torch.bfloat16
    torch.testing.assert_close(ours.float(), theirs, atol=0.1, rtol=0.02)
    found, expected = (torch.autograd.grad(Y.float().sum(), variables) for Y in (ours, theirs))
    for a, b in zip(found, expected):
        assert a.dtype == torch.float32
        # Of two places that are nearly equal, rounding decides which one wins.
        assert F.cosine_similarity(a.flatten(), b.flatten(), dim=0) > 0.98


# ---- LSTM

BATCH_SIZES = [3, 3, 2, 1]
CLIPS = {"none": {}, "clips": {"cell_clip": 0.4, "proj_clip": 0.2}}


def make_layer(projection=True, dtype=torch.float64, **settings):
    torch.manual_seed(0)
    width = 5 if projection else 4
    config = BiLMConfig(width=8, cell_width=width, projection=projection, **settings)
    layer = LSTMLayer(config).to(dtype)
    state = torch.randn(3, 4, dtype=dtype), torch.randn(3, width, dtype=dtype)
    return layer, torch.randn(9, 4, dtype=dtype), state


def run_with_gradients(layer, X, state, run):
    """RETURNS outputs, final state, and the gradients of all inputs and weights."""
    inputs = [part.detach().requires_grad_() for part in (X, *state)]
    Y, final = run(inputs[0], tuple(inputs[1:]))
    results = [Y, *final]
    variables = [*inputs, *layer.parameters()]
    loss = sum((part * (k + 2)).square().sum() for k, part in enumerate(results))
    return [part.detach() for part in (*results, *torch.autograd.grad(loss, variables))]


@pytest.mark.parametrize("projection", [True, False])
@pytest.mark.parametrize("clips", CLIPS.values(), ids=CLIPS)
def test_a_layer_equals_the_oracle_and_finite_differences(projection, clips):
    layer, X, state = make_layer(projection, **clips)

    Y, final = layer(X, BATCH_SIZES, state)
    assert_close(
        [Y.detach(), *(p.detach() for p in final)], run_packed(layer, X, BATCH_SIZES, state), 1e-12
    )

    names = [name for name, _ in layer.named_parameters()]

    def run(X, hidden, cell, *weights):
        arguments = X, BATCH_SIZES, (hidden, cell)
        Y, final = torch.func.functional_call(layer, dict(zip(names, weights)), arguments)
        return Y, *final

    inputs = [part.detach().requires_grad_() for part in (X, *state, *layer.parameters())]
    assert torch.autograd.gradcheck(run, inputs, atol=1e-6, fast_mode=True)


@pytest.mark.parametrize("projection", [True, False])
def test_torchs_lstm_gives_the_numbers_and_gradients_of_the_steps(projection):
    """It replaces them on a GPU."""
    layer, X, state = make_layer(projection)
    assert has_torch_layer(layer)

    expected = run_with_gradients(layer, X, state, lambda X, s: layer(X, BATCH_SIZES, s))
    found = run_with_gradients(
        layer, X, state, lambda X, s: run_torch_lstm(X, make_torch_weights(layer), BATCH_SIZES, s)
    )

    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_torchs_lstm_knows_no_clip_and_no_wide_projection():
    assert not has_torch_layer(make_layer(cell_clip=1.0)[0])
    assert not has_torch_layer(make_layer(proj_clip=1.0)[0])
    assert not has_torch_layer(LSTMLayer(BiLMConfig(**{**SHAPE, "cell_width": 4})))


@pytest.mark.parametrize("how", ["argument", "autocast"])
def test_products_take_a_short_type_and_results_do_not(how):
    layer, X, state = make_layer(dtype=torch.float32)
    expected = run_with_gradients(layer, X, state, lambda X, s: layer(X, BATCH_SIZES, s))

    def run(X, state):
        if how == "argument":
            return layer(X, BATCH_SIZES, state, torch.bfloat16)
        with torch.autocast("cpu", torch.bfloat16):
            return layer(X, BATCH_SIZES, state)

    for one, other in zip(run_with_gradients(layer, X, state, run), expected, strict=True):
        assert one.dtype == torch.float32
        assert_close(one, other, 0.05 * max(1.0, float(other.abs().max())))


@pytest.mark.gpu
@pytest.mark.parametrize("projection", [True, False])
@pytest.mark.parametrize("clips", CLIPS.values(), ids=CLIPS)
@pytest.mark.parametrize("dtype, atol", [(torch.float32, 1e-4), (torch.bfloat16, 0.1)])
def test_a_gpu_gives_the_numbers_of_a_processor(projection, clips, dtype, atol):
    layer, X, state = make_layer(projection, torch.float32, **clips)
    expected = run_with_gradients(layer, X, state, lambda X, s: layer(X, BATCH_SIZES, s))
    layer, X, state = layer.cuda(), X.cuda(), tuple(part.cuda() for part in state)

    found = run_with_gradients(layer, X, state, lambda X, s: layer(X, BATCH_SIZES, s, dtype))

    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-4 if atol < 0.1 else 0.1, atol=atol)


def test_a_sequence_in_two_pieces_equals_one():
    stack = BiLM(BiLMConfig(**SHAPE)).requires_grad_(False).forward_lstm
    X, zero = torch.randn(9, 4), [(torch.zeros(1, 4), torch.zeros(1, 6))] * 2

    whole, final = stack(X, [1] * 9, zero)
    first, state = stack(X[:5], [1] * 5, zero)
    second, final_of_two = stack(X[5:], [1] * 4, state)

    assert_close([torch.cat(pieces) for pieces in zip(first, second)], whole)
    assert_close([cell for _, cell in final_of_two], [cell for _, cell in final])


# ---- the whole network


def test_the_first_words_take_as_much_memory_as_they_are_long(monkeypatch):
    """Not as much as the longest word that could come."""
    bilm = BiLM(BiLMConfig(**{**SHAPE, "max_chars": RANGES["max_chars"][1]}))
    sizes = []
    monkeypatch.setattr(bilm, "encode", lambda part: sizes.append(part.shape) or part[:, :1])

    bilm.encode_words(["ham", "x" * 100, *map(str, range(1500))])

    assert [n_chars <= 104 for _, n_chars in sizes] == [True, True]
    assert sizes[0][1] <= 8


# ---- word tables


def make_config(n_words, input="words"):
    vector_width = 3 if input == "vectors" else 0
    return BiLMConfig(**SHAPE, input=input, n_words=n_words, vector_width=vector_width)


@given(st.lists(st.text(), unique=True, max_size=20))
def test_a_table_finds_each_word_and_no_other(words):
    words = [w for w in words if w not in ("<S>", "</S>")]
    table = WordTable(make_config(len(words), "vectors"))
    vectors = torch.arange(3.0 * len(words)).reshape(-1, 3)
    table.fill(words, vectors)

    rows = table.find([*words, "never seen \x00", "<S>", "</S>"])

    torch.testing.assert_close(table.vectors[rows[: len(words)] - 3], vectors)
    assert rows[len(words) :].tolist() == [2, 0, 1]


@pytest.mark.parametrize("input", ["words", "vectors"])
def test_tables_make_layers_learn_and_survive_as_weights(input):
    torch.manual_seed(0)
    bilm = BiLM(make_config(2, input))
    bilm.word_table.fill(["ham", "eggs"])
    known, unknown, other = Embedder(bilm).embed([["ham"], ["spam"], ["bacon"]])

    assert abs(known - unknown).max() > 1e-3
    np.testing.assert_allclose(unknown, other, atol=1e-6)
    again = BiLM(bilm.config)
    again.load_state_dict(bilm.state_dict())
    np.testing.assert_allclose(Embedder(again).embed([["ham"]])[0], known, atol=1e-6)
    bilm.encode_words(["ham", "spam", "<S>"]).sum().backward()
    trained = {name for name, _ in bilm.word_table.named_parameters()}
    # Given vectors stay as they are.
    assert ("vectors" in trained) == (input == "words")
    assert bilm.word_table.special.grad.abs().sum() > 0


def test_an_empty_table_knows_the_boundaries():
    assert Embedder(BiLM(make_config(0))).embed([["ham"]])[0].shape == (3, 1, 8)
