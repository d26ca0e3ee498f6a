import numpy as np
import pytest

from spacy_elmo.layers.word_dropout import drop_words

WIDTH = 3


def make_rows(*lengths):
    rng = np.random.default_rng(0)
    return [rng.standard_normal((n, WIDTH)).astype("float32") for n in lengths]


def test_whole_rows_are_dropped_in_training_and_in_the_gradient():
    model, Xs, dYs = drop_words(0.3), make_rows(0, 500, 500), make_rows(0, 500, 500)

    Ys, backprop = model.begin_update(Xs)
    dXs = backprop(dYs)

    X, Y, dY, dX = (np.concatenate(rows) for rows in (Xs, Ys, dYs, dXs))
    dropped = (Y == 0).all(axis=1)
    assert 0.2 < dropped.mean() < 0.4
    np.testing.assert_array_equal(Y[~dropped], X[~dropped])
    np.testing.assert_array_equal(dX[~dropped], dY[~dropped])
    assert (dX[dropped] == 0).all()
    assert [row.dtype for row in Ys + dXs] == ["float32"] * 6


def test_nothing_is_dropped_in_prediction():
    Xs = make_rows(4, 0, 2)

    for X, Y in zip(Xs, drop_words(0.9).predict(Xs)):
        np.testing.assert_array_equal(Y, X)


@pytest.mark.parametrize("n_docs", [0, 1])
def test_no_tokens(n_docs):
    Ys, backprop = drop_words(0.5).begin_update(make_rows(0)[:n_docs])

    assert [Y.shape for Y in Ys] == [(0, WIDTH)] * n_docs
    assert [dX.shape for dX in backprop(Ys)] == [(0, WIDTH)] * n_docs


def test_the_config_decides_and_not_what_was_saved():
    saved, Xs = drop_words(0.9).to_bytes(), make_rows(100)
    model = drop_words(0.0).from_bytes(saved)

    np.testing.assert_array_equal(model(Xs, True)[0][0], Xs[0])
