"""The torch layers that tasks share: dropout, LSTMs, attention, padding; and the BCN."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import Adam
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from spacy_elmo.tasks.sentiment import BCN
from spacy_elmo.tasks.shared import attention
from spacy_elmo.tasks.shared.attention import attend, map_parts, masked_softmax, pad, plan_padded
from spacy_elmo.tasks.shared.bilstm import (
    build_bilstm_encoder_v1,
    order_sequences,
    run_lstm,
)
from spacy_elmo.tasks.shared.torch_layer import SizedModule, drop

from ..support.helpers import assert_close, assert_gradient

LENGTHS = st.lists(st.integers(1, 12), min_size=1, max_size=9)
CPU = torch.device("cpu")


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.5, 0.97])
def test_dropout_keeps_the_mean(rate):
    torch.manual_seed(0)
    X = torch.linspace(1, 2, 40_000).view(100, 400)
    Ys = [drop(X, rate) for _ in range(10)]

    # Five standard deviations of 400,000 draws.
    bound = 5 * (rate * (1 - rate) / (10 * X.numel())) ** 0.5
    kept = torch.cat([Y.flatten() for Y in Ys]) != 0
    assert abs(1 - float(kept.float().mean()) - rate) < bound
    mean = sum(float(Y.mean()) for Y in Ys) / 10
    assert abs(mean - float(X.mean())) < 2 * bound / (1 - rate)
    # The four numbers of one draw are independent.
    expected = rate**2 + (1 - rate) ** 2
    for step in (1, 2, 3, 4):
        alike = float((kept[:-step] == kept[step:]).float().mean())
        assert abs(alike - expected) < 5 * (expected * (1 - expected) / len(kept)) ** 0.5 + 0.001
    assert drop(X, 0.0) is X


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("backward", [False, True])
@given(lengths=LENGTHS)
def test_an_lstm_reads_each_sequence_alone(backward, dtype, lengths):
    torch.manual_seed(0)
    lstm = nn.LSTM(4, 3, dtype=dtype)
    X = torch.randn(sum(lengths), 4, dtype=dtype, requires_grad=True)
    Y = run_lstm(lstm, X, order_sequences(lengths, CPU)[backward])
    parts = [
        lstm(part.flip(0))[0].flip(0) if backward else lstm(part)[0] for part in X.split(lengths)
    ]
    expected = torch.cat(parts)

    torch.testing.assert_close(Y, expected, atol=1e-6, rtol=0)
    inputs, dY = [X, *lstm.parameters()], torch.randn_like(Y)
    grads = torch.autograd.grad(Y, inputs, dY), torch.autograd.grad(expected, inputs, dY)
    for found, wanted in zip(*grads):
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


def make_rows(lengths=(3, 0, 9, 1), width=5, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, width)).astype("float32") for n in lengths]


@pytest.fixture
def model():
    torch.manual_seed(0)
    return build_bilstm_encoder_v1(6, depth=2).initialize(X=make_rows())


def test_the_encoder_is_torchs_own_lstm(model):
    Xs = make_rows()
    together = model.predict(Xs)
    for X, Y in zip(Xs, together):
        expected = torch.from_numpy(X)
        for layer in model.shims[0]._model.body.layers:
            expected = layer(expected)[0] if len(X) else torch.zeros(0, 6)
        assert_close([Y], [expected.detach().numpy()])
    assert model.predict([]) == []


def test_the_encoder_has_its_gradient(model):
    Xs, dYs = make_rows([2, 0, 3]), make_rows([2, 0, 3], width=6, seed=1)
    _, backprop = model.begin_update(Xs)

    def get_sum():
        return sum((np.float64(a) * b).sum() for a, b in zip(model.predict(Xs), dYs))

    assert_gradient(get_sum, Xs, backprop(dYs), eps=1e-2, atol=2e-3)


def test_weights_of_other_shapes_are_refused(model):
    with pytest.raises(ValueError, match="EL020"):
        build_bilstm_encoder_v1(6, depth=1).from_bytes(model.to_bytes())
    with pytest.raises(ValueError, match="EL021"):
        model.shims[0].from_bytes(
            build_bilstm_encoder_v1(8, 2).initialize(X=make_rows()).shims[0].to_bytes()
        )
    with pytest.raises(ValueError, match="EL190"):
        SizedModule(partial(nn.Linear, out_features=2))(torch.zeros(1, 1))


def test_averaged_weights_are_used_and_put_back(model):
    optimizer = Adam(0.1, use_averages=True)
    for _ in range(3):
        Ys, backprop = model.begin_update(make_rows())
        backprop([np.ones_like(Y) for Y in Ys])
        model.finish_update(optimizer)
    trained = model.predict(make_rows())
    with model.use_params(optimizer.averages):
        averaged = model.predict(make_rows())

    assert np.abs(trained[0] - averaged[0]).max() > 1e-3
    assert_close(model.predict(make_rows()), trained, atol=0)


@given(st.lists(st.integers(0, 40)), st.integers(1, 200))
def test_padded_groups_are_bounded(lengths, budget):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "MOST_PADDED", budget)
        groups = list(plan_padded(lengths))
    tokens = [i for i, length in enumerate(lengths) if length]
    assert sorted(i for group in groups for i in group) == tokens
    for group in groups:
        assert len(group) == 1 or len(group) * max(lengths[i] for i in group) <= budget


@pytest.mark.parametrize("lengths", [[2, 0, 3], [0, 0], [4], [1, 1]], ids=str)
def test_padding_is_torch_s_own(lengths):
    X = torch.randn(sum(lengths), 3, requires_grad=True)
    padded, mask = pad(X, lengths)

    expected = pad_sequence(list(X.split(lengths)), batch_first=True)
    assert torch.equal(padded, expected) and mask.sum(1).tolist() == lengths
    weights = torch.randn_like(padded)
    ours, theirs = (torch.autograd.grad((Y * weights).sum(), X)[0] for Y in (padded, expected))
    assert torch.equal(ours, theirs)


def test_padding_never_counts():
    X, lengths = torch.randn(5, 3), [2, 0, 3]
    padded, mask = pad(X, lengths)
    pools = {"mean": lambda P: P.mean(0), "max": lambda P: P.amax(0)}
    for name, pool in pools.items():
        pooled = getattr(attention, f"pool_{name}")(padded, mask)
        np.testing.assert_allclose(pooled[0], pool(X[:2]), atol=1e-6)
        assert not pooled[1].any()
    assert not attend(padded, padded, mask, mask)[~mask].any()
    assert masked_softmax(torch.zeros(2), torch.tensor([True, False])).tolist() == [1, 0]


def test_attention_of_long_texts_is_computed_in_slices(monkeypatch):
    torch.manual_seed(0)
    (A, mask_a), (B, mask_b) = (
        pad(torch.randn(sum(lengths), 3), lengths) for lengths in ([5, 0, 9], [2, 4, 7])
    )
    A.requires_grad_()
    expected = attend(A, B, mask_a, mask_b)
    (gradient,) = torch.autograd.grad(expected.square().sum(), A)
    for most in (45, 1):
        monkeypatch.setattr(attention, "_MOST_SCORES", most)
        found = attend(A, B, mask_a, mask_b)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(torch.autograd.grad(found.square().sum(), A)[0], gradient)


def test_a_linear_layer_over_parts_is_that_over_one_array():
    torch.manual_seed(0)
    linear = nn.Linear(6, 4).double()
    parts = [torch.randn(5, n, dtype=torch.double, requires_grad=True) for n in (3, 1, 2)]
    inputs = [*parts, *linear.parameters()]
    found, expected = map_parts(linear, parts, 0.0), linear(torch.cat(parts, -1))

    torch.testing.assert_close(found, expected)
    grads = (torch.autograd.grad(Y.square().sum(), inputs) for Y in (found, expected))
    for own, other in zip(*grads):
        torch.testing.assert_close(own, other)


def oracle_bcn(module, X):
    """One text, without padding."""
    X = torch.relu(module.project(X))
    X = module.encode.layers[0](X)[0]
    context = torch.softmax(X @ X.T, 1) @ X
    X = module.integrate.layers[0](torch.cat([X, X - context, X * context], 1))[0]
    weighted = torch.softmax(module.attend(X)[:, 0], 0) @ X
    Y = torch.cat([X.amax(0), X.mean(0), X.amin(0), weighted])
    for layer in module.reduce:
        Y = layer(Y).view(-1, module.pieces).amax(1)
    return Y


def test_bcn_is_that_of_the_paper():
    torch.manual_seed(0)
    module, lengths = BCN(5, 6, 3), [4, 1, 9]
    X = torch.randn(14, 5)
    with torch.no_grad():
        expected = torch.stack([oracle_bcn(module, part) for part in X.split(lengths)])
        np.testing.assert_allclose(module(X, lengths), expected, atol=1e-6)


def test_bcn_has_its_gradient():
    torch.manual_seed(0)
    module = BCN(3, 4, 2).double()
    X = torch.randn(6, 3, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda X: module(X, [2, 4]), X)
