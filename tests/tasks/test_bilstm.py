"""The bidirectional LSTM and the torch layers of tasks."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest
import srsly
import torch
from thinc.api import Adam
from torch import nn

from spacy_elmo.tasks.shared.bilstm import bilstm, build_bilstm_encoder_v1
from spacy_elmo.tasks.shared.torch_layer import SizedModule, run_rows, torch_layer

from ..support.helpers import assert_close

LENGTHS = [3, 0, 9, 1]


def make_rows(lengths=LENGTHS, width=5, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, width)).astype("float32") for n in lengths]


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = build_bilstm_encoder_v1(6, depth=2)
    return model.initialize(X=make_rows())


def test_rows_do_not_depend_on_batch_mates(model):
    Xs = make_rows()
    together = model.predict(Xs)

    assert [Y.shape for Y in together] == [(n, 6) for n in LENGTHS]
    assert_close([model.predict([X])[0] for X in Xs], together)
    assert_close(model.predict(Xs[::-1])[::-1], together)
    assert model.predict([]) == []


def test_it_is_torchs_own_lstm(model):
    """Layer by layer, each sequence alone: no packing."""
    X = make_rows([7])[0]
    Y = torch.from_numpy(X)
    for layer in model.shims[0]._model.body.layers:
        Y = layer(Y)[0]

    assert_close(model.predict([X]), [Y.detach().numpy()])


def test_gradients_are_those_of_finite_differences(model):
    Xs = make_rows([2, 0, 3])
    _, backprop = model.begin_update(Xs)
    dYs = make_rows([2, 0, 3], width=6, seed=1)
    dXs = backprop(dYs)
    eps = 1e-2
    for X, dX in zip(Xs, dXs):
        for place in np.ndindex(X.shape):
            value, sums = X[place], []
            for sign in (1, -1):
                X[place] = value + sign * eps
                Y = model.predict(Xs)
                sums.append(sum((np.float64(a) * b).sum() for a, b in zip(Y, dYs)))
            X[place] = value
            np.testing.assert_allclose(dX[place], (sums[0] - sums[1]) / (2 * eps), atol=2e-3)


def test_empty_batches_go_both_ways(model):
    Xs = make_rows([0, 0])
    Ys, backprop = model.begin_update(Xs)

    assert [Y.shape for Y in Ys] == [(0, 6)] * 2
    assert [dX.shape for dX in backprop(Ys)] == [(0, 5)] * 2


def test_dropout_is_for_training_alone():
    model = bilstm(6, dropout=0.5).initialize(X=make_rows())
    Xs = make_rows()
    trained, _ = model.begin_update(Xs)

    assert (trained[2] == 0).any()
    assert_close(model.predict(Xs), model.predict(Xs), atol=0)
    assert not (model.predict(Xs)[2] == 0).any()


@pytest.mark.parametrize("make_copy", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_say_the_same(model, make_copy):
    assert_close(make_copy(model).predict(make_rows()), model.predict(make_rows()))


def test_a_model_that_was_never_initialized_loads(model):
    loaded = build_bilstm_encoder_v1(6, depth=2).from_bytes(model.to_bytes())

    assert_close(loaded.predict(make_rows()), model.predict(make_rows()))


def test_other_shapes_and_other_data_are_refused(model):
    other = build_bilstm_encoder_v1(6, depth=1)
    with pytest.raises(ValueError, match="EL020"):
        other.from_bytes(model.to_bytes())
    with pytest.raises(ValueError, match="EL021"):
        model.shims[0].from_bytes(bilstm(8, 2).initialize(X=make_rows()).shims[0].to_bytes())
    with pytest.raises(ValueError, match="EL116"):
        state = srsly.msgpack_dumps({"state": b""})
        model.shims[0].from_bytes(srsly.msgpack_dumps({"config": {}, "state": state}))
    assert model.predict(make_rows())[0].shape == (3, 6)


def test_averages_reach_the_weights_and_go_again(model):
    optimizer = Adam(0.1, use_averages=True)
    before = model.predict(make_rows())
    for _ in range(3):
        Ys, backprop = model.begin_update(make_rows())
        backprop([np.ones_like(Y) for Y in Ys])
        model.finish_update(optimizer)
    trained = model.predict(make_rows())
    with model.use_params(optimizer.averages):
        averaged = model.predict(make_rows())

    assert np.abs(trained[0] - before[0]).max() > 1e-3
    assert np.abs(trained[0] - averaged[0]).max() > 1e-3
    assert_close(model.predict(make_rows()), trained, atol=0)


@pytest.mark.parametrize(
    "settings, code",
    [
        ({"width": 7}, "EL192"),
        ({"width": 0}, "EL192"),
        ({"width": 6, "depth": 0}, "EL012"),
        ({"width": 6, "dropout": 1.0}, "EL191"),
    ],
)
def test_impossible_settings_are_refused(settings, code):
    with pytest.raises(ValueError, match=code):
        build_bilstm_encoder_v1(**settings)


def test_a_module_without_weights_says_so():
    with pytest.raises(ValueError, match="EL190"):
        SizedModule(partial(nn.Linear, out_features=2))(torch.zeros(1, 1))


class First(nn.Module):
    def __init__(self, nI):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, X, lengths):
        return self.weight.expand(1, 1)


def test_input_that_is_not_used_has_no_gradient():
    model = torch_layer("first", lambda *_: None, First, nO=1).initialize(X=make_rows())
    Y, backprop = run_rows(model, make_rows(), True)

    assert all(not dX.any() for dX in backprop(np.ones_like(Y)))
