"""One direction of torch's LSTM over sequences of any lengths, padded or packed."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from spacy_elmo.tasks.shared.sequence_lstm import (
    order_sequences,
    pack_sequences,
    pad_sequences,
    run_lstm,
)

LENGTHS = st.lists(st.integers(1, 12), min_size=1, max_size=9)
WAYS = pytest.mark.parametrize("make_order", [pad_sequences, pack_sequences])


def make(lengths, seed=0):
    torch.manual_seed(seed)
    return nn.LSTM(4, 3), torch.randn(sum(lengths), 4, requires_grad=True)


def run_alone(lstm, X, lengths, backward):
    """By torch's module, each sequence alone."""
    Ys = []
    for part in X.split(lengths):
        Ys.append(lstm(part.flip(0))[0].flip(0) if backward else lstm(part)[0])
    return torch.cat(Ys)


@WAYS
@pytest.mark.parametrize("backward", [False, True])
@given(lengths=LENGTHS)
def test_outputs_and_gradients_are_those_of_each_sequence_alone(make_order, backward, lengths):
    lstm, X = make(lengths)
    inputs = [X, *lstm.parameters()]
    Y = run_lstm(lstm, X, make_order(lengths, X.device), backward=backward)
    expected = run_alone(lstm, X, lengths, backward)
    dY = torch.randn_like(Y)

    torch.testing.assert_close(Y, expected, atol=1e-6, rtol=0)
    grads = torch.autograd.grad(Y, inputs, dY), torch.autograd.grad(expected, inputs, dY)
    for found, wanted in zip(*grads):
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


@WAYS
@given(lengths=LENGTHS)
def test_every_row_is_read_once_by_each_direction_or_is_padding(make_order, lengths):
    order = make_order(lengths, torch.device("cpu"))
    for reading in order.forward, order.backward:
        read = torch.cat([rows.flatten() for rows in reading.rows])
        assert read[reading.places].tolist() == list(range(sum(lengths)))
    if order.batch_sizes is not None:
        sizes = [sum(n > t for n in lengths) for t in range(max(lengths))]
        assert order.batch_sizes.tolist() == sizes


@given(lengths=LENGTHS)
def test_padding_is_bounded(lengths):
    """A place of a group is a token or padding, and never more than twice the tokens."""
    order = pad_sequences(lengths, torch.device("cpu"))
    n_places = sum(rows.numel() for rows in order.forward.rows)

    assert sum(lengths) <= n_places <= 2 * sum(lengths)


def test_what_runs_follows_from_the_type():
    """oneDNN has no LSTM of doubles."""
    lengths = [2, 5, 1]
    lstm, X = make(lengths)
    double = lstm.double(), X.double()
    order = order_sequences(lengths, double[1])

    assert order.batch_sizes is not None
    Y = run_lstm(double[0], double[1], order, backward=False)
    expected = run_alone(double[0], double[1], lengths, False)
    np.testing.assert_allclose(Y.detach(), expected.detach(), atol=1e-12)


def test_no_gradient_is_wanted_no_graph_is_kept():
    lstm, X = make([2, 5])
    with torch.no_grad():
        Y = run_lstm(lstm, X, order_sequences([2, 5], X), backward=True)

    assert not Y.requires_grad
