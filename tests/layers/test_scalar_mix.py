import numpy as np
import pytest
from thinc.api import SGD

from spacy_elmo.layers.scalar_mix import (
    MixSettings,
    get_weights,
    scalar_mix,
)

N_LAYERS, WIDTH = 3, 4
LENGTHS = (2, 0, 3)

TRAINED = {
    "uniform": MixSettings(),
    "initial weights": MixSettings(initial_weights=[0.5, -1.0, 2.0]),
    "pulled": MixSettings(initial_weights=[0.5, -1.0, 2.0], mix_l2=0.1),
    "normalised": MixSettings(initial_weights=[0.1, 0.2, 0.9], mix_layer_norm=True),
    "faster": MixSettings(initial_weights=[0.5, -1.0, 2.0], mix_l2=0.1, learn_rate_factor=32.0),
}
FIXED = {
    "average": MixSettings("average"),
    "top": MixSettings("top"),
    "words": MixSettings(0),
    "layer 1": MixSettings(1),
    "fixed": MixSettings(initial_weights=[0.5, -1.0, 2.0], fixed_weights=True),
    "fixed, normalised": MixSettings("top", mix_layer_norm=True),
    "all": MixSettings("all"),
    "all, normalised": MixSettings("all", mix_layer_norm=True),
}
ALL = {**TRAINED, **FIXED}


@pytest.fixture(autouse=True)
def _parts(monkeypatch):
    """Layers are normalised in several parts: of four rows, of the fifteen here."""
    monkeypatch.setattr("spacy_elmo.layers.scalar_mix._NORM_ROWS", 4)


def make(settings):
    rng = np.random.default_rng(0)
    model = scalar_mix(N_LAYERS, WIDTH, settings)
    Xs = [rng.standard_normal((n, N_LAYERS * WIDTH)).astype("float32") for n in LENGTHS]
    width = model.get_dim("nO")
    dYs = [rng.standard_normal((n, width)).astype("float32") for n in LENGTHS]
    return model, Xs, dYs


def read_weights(model):
    return np.array(get_weights(model), dtype="float64")


def reference(Xs, W, gamma, settings):
    """The formula of the paper, in doubles."""
    X = np.concatenate(Xs).astype("float64").reshape(-1, N_LAYERS, WIDTH)
    if settings.mix_layer_norm:
        X = (X - X.mean(-1, keepdims=True)) / X.std(-1, keepdims=True)
    if settings.output == "all":
        return gamma * X.reshape(-1, N_LAYERS * WIDTH)
    shares = {
        "mix": np.exp(W) / np.exp(W).sum(),
        "average": np.full(N_LAYERS, 1 / N_LAYERS),
        "top": np.array([0, 0, 1]),
        0: np.array([1, 0, 0]),
        1: np.array([0, 1, 0]),
    }[settings.output]
    return gamma * np.einsum("j,tjw->tw", shares, X)


def loss(Xs, W, gamma, settings, dYs):
    """A loss whose gradient is dYs, and the pull."""
    Y = reference(Xs, W, gamma, settings)
    return (np.concatenate(dYs) * Y).sum() + settings.mix_l2 * (W**2).sum()


def finite_differences(function, x, eps=1e-5):
    x = np.array(x, dtype="float64")
    gradient = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[i] = eps
        gradient[i] = (function(x + step) - function(x - step)) / (2 * eps)
    return gradient


@pytest.mark.parametrize("settings", ALL.values(), ids=ALL)
def test_forward_follows_the_formula(settings):
    model, Xs, _ = make(settings)
    model.set_param("gamma", np.array([1.5], dtype="float32"))

    Ys = model.predict(Xs)

    assert [Y.shape for Y in Ys] == [(n, model.get_dim("nO")) for n in LENGTHS]
    expected = reference(Xs, read_weights(model), 1.5, settings)
    np.testing.assert_allclose(np.concatenate(Ys), expected, atol=1e-5)


@pytest.mark.parametrize("settings", TRAINED.values(), ids=TRAINED)
def test_gradients_equal_finite_differences(settings):
    model, Xs, dYs = make(settings)
    model.set_param("gamma", np.array([1.5], dtype="float32"))
    W = read_weights(model)

    _, backprop = model.begin_update(Xs)
    dXs = backprop(dYs)

    dW = finite_differences(lambda W: loss(Xs, W, 1.5, settings, dYs), W)
    dgamma = finite_differences(lambda g: loss(Xs, W, g[0], settings, dYs), [1.5])
    factor = settings.learn_rate_factor  # of the loss with regard to the parameters
    np.testing.assert_allclose(model.get_grad("W"), factor * dW, atol=1e-4 * factor)
    np.testing.assert_allclose(model.get_grad("gamma"), dgamma, atol=1e-4)
    X = np.concatenate(Xs)
    dX = finite_differences(lambda X: loss([X], W, 1.5, settings, dYs), X)
    np.testing.assert_allclose(np.concatenate(dXs), dX, atol=1e-4)
    assert [dX.shape for dX in dXs] == [X.shape for X in Xs]


@pytest.mark.parametrize("settings", FIXED.values(), ids=FIXED)
def test_fixed_mixes_have_gradients_to_their_input_alone(settings):
    model, Xs, dYs = make(settings)
    W = read_weights(model)

    _, backprop = model.begin_update(Xs)
    dXs = backprop(dYs)

    assert not model.has_grad("W") and not model.has_grad("gamma")
    X = np.concatenate(Xs)
    dX = finite_differences(lambda X: loss([X], W, 1.0, settings, dYs), X)
    np.testing.assert_allclose(np.concatenate(dXs), dX, atol=1e-4)


@pytest.mark.parametrize("output", ["mix", "all"])
def test_dropout_is_in_training_alone_and_in_the_gradient(output):
    model, Xs, dYs = make(MixSettings(output, mix_dropout=0.5))
    full = np.concatenate(model.predict(Xs))

    Ys, backprop = model.begin_update(Xs)
    Y = np.concatenate(Ys)
    dX = np.concatenate(backprop(dYs))

    dropped = Y == 0
    assert 0 < dropped.sum() < Y.size
    np.testing.assert_allclose(Y[~dropped], 2 * full[~dropped], rtol=1e-5)
    assert (dX[:, : Y.shape[1]][dropped] == 0).all()
    np.testing.assert_array_equal(np.concatenate(model.predict(Xs)), full)


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.97])
def test_dropout_keeps_the_mean(rate):
    model = scalar_mix(N_LAYERS, 400, MixSettings("all", mix_dropout=rate))
    model.initialize()
    ones = [np.ones((100, N_LAYERS * 400), dtype="float32")]

    Y = model.begin_update(ones)[0][0]

    # Five standard deviations of the share that is dropped.
    bound = 5 * (rate * (1 - rate) / Y.size) ** 0.5
    assert abs((Y == 0).mean() - rate) < bound
    assert abs(Y.mean() - 1) < bound / (1 - rate)
    assert Y.dtype == "float32" and len(np.unique(Y)) == 2


def test_many_tokens_are_mixed_in_parts(monkeypatch):
    model, _, _ = make(MixSettings(mix_layer_norm=True))
    rng = np.random.default_rng(0)
    Xs = [rng.standard_normal((n, 12)).astype("float32") for n in (0, 4, 7, 25, 1)]
    expected = model.predict(Xs)
    monkeypatch.setattr("spacy_elmo.layers.scalar_mix.PART_TOKENS", 10)

    for Y, other in zip(model.predict(Xs), expected, strict=True):
        np.testing.assert_allclose(Y, other, atol=1e-6)


@pytest.mark.parametrize("output", ["mix", "all"])
@pytest.mark.parametrize("Xs", [[], [np.zeros((0, 12), dtype="float32")]], ids=["none", "empty"])
def test_nothing_in_gives_nothing_out(Xs, output):
    model, _, _ = make(MixSettings(output))

    Ys, backprop = model.begin_update(Xs)

    assert [Y.shape for Y in Ys] == [(0, model.get_dim("nO"))] * len(Xs)
    assert [dX.shape for dX in backprop(Ys)] == [(0, 12)] * len(Xs)


def test_rows_of_zeros_stay_zeros_when_normalised():
    model, _, _ = make(MixSettings(mix_layer_norm=True))
    Xs = np.random.default_rng(0).standard_normal((3, 12)).astype("float32")
    Xs[1] = 0
    Ys, backprop = model.begin_update([Xs])
    (dXs,) = backprop([np.random.default_rng(1).standard_normal((3, 4)).astype("float32")])

    # What is divided by next to nothing would be all of the loss that is shown.
    assert (Ys[0][1] == 0).all() and not dXs[1].any()
    assert dXs[0].any() and np.abs(dXs).max() < 100


@pytest.mark.parametrize("n_layers", [1, 2, 4])
@pytest.mark.parametrize("is_train", [True, False])
def test_another_number_of_layers_is_refused(n_layers, is_train):
    """A sum over fewer would be no mix of these layers."""
    model, Xs, _ = make(MixSettings())
    wrong = np.ones((2, n_layers * WIDTH), dtype="float32")

    with pytest.raises(ValueError, match=f"width {n_layers * WIDTH}, expected 12"):
        model([*Xs, wrong], is_train)


BAD = {
    "output": ({"output": "bottom"}, "EL012.*output = 'bottom'"),
    "layer above": ({"output": 3}, "EL012.*output = 3"),
    "layer below": ({"output": -1}, "EL012.*output = -1"),
    "weights": ({"initial_weights": [1.0]}, "EL012.*initial_weights.*3 numbers"),
    "weights of a fixed output": (
        {"output": "top", "initial_weights": [1.0, 2.0, 3.0]},
        'EL012.*initial_weights.*output = "mix"',
    ),
    "pull": ({"mix_l2": -1.0}, "EL012.*mix_l2 = -1"),
    "dropout": ({"mix_dropout": 1.0}, "EL012.*mix_dropout = 1"),
}


@pytest.mark.parametrize("settings, match", BAD.values(), ids=BAD)
def test_impossible_settings_are_refused(settings, match):
    with pytest.raises(ValueError, match=match):
        scalar_mix(N_LAYERS, WIDTH, MixSettings(**settings))


def test_the_pull_is_added_once_for_an_update_of_several_batches():
    def update(*batches, mix_l2):
        model, _, _ = make(MixSettings(initial_weights=[3.0, 0.0, -3.0], mix_l2=mix_l2))
        for X, dY in batches:
            model.begin_update([X])[1]([dY])
        return model, model.get_grad("W").copy()

    _, Xs, dYs = make(MixSettings())
    batches = list(zip(Xs, dYs))
    model, pulled = update(*batches, mix_l2=0.5)
    _, free = update(*batches, mix_l2=0.0)
    pull = 2 * 0.5 * model.get_param("W")
    np.testing.assert_allclose(pulled - free, pull, atol=1e-5)

    # The next update has its own pull.
    model.finish_update(SGD(0.0))
    model.begin_update([Xs[0]])[1]([0 * dYs[0]])
    np.testing.assert_allclose(model.get_grad("W"), pull, atol=1e-5)
