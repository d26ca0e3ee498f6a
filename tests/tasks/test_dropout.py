import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.tasks.shared.dropout import Dropout, drop

X = torch.linspace(1, 2, 40_000).view(100, 400)


@given(st.floats(0, 1, exclude_max=True), st.integers(0, 9), st.integers(1, 5))
def test_numbers_are_dropped_or_scaled(rate, n_rows, n_columns):
    rows = X[:n_rows, :n_columns]

    Y = drop(rows, rate)

    kept = Y != 0
    assert Y.shape == rows.shape and Y.dtype == rows.dtype
    # A rate is rounded to a 65,536th, and never to 1.
    scale = 1 / max(1 - rate, 2**-16)
    bounds = rows[kept] * scale / (1 + scale / 2**16), rows[kept] * scale * (1 + scale / 2**16)
    assert (bounds[0] <= Y[kept] * 1.0001).all() and (Y[kept] <= bounds[1] * 1.0001).all()


@pytest.mark.parametrize("rate", [0.01, 0.3, 0.5, 0.97])
def test_the_share_of_dropped_numbers_and_the_mean(rate):
    torch.manual_seed(0)
    Ys = [drop(X, rate) for _ in range(10)]

    # Five standard deviations of 400,000 draws.
    bound = 5 * (rate * (1 - rate) / (10 * X.numel())) ** 0.5
    shares = [float((Y == 0).float().mean()) for Y in Ys]
    assert abs(sum(shares) / 10 - rate) < bound
    mean = sum(float(Y.mean()) for Y in Ys) / 10
    assert abs(mean - float(X.mean())) < 2 * bound / (1 - rate)
    assert not torch.equal(Ys[0], Ys[1])
    # Numbers of one draw, of which there are four, know nothing of each other.
    kept = torch.cat([Y.flatten() for Y in Ys]) != 0
    expected = rate**2 + (1 - rate) ** 2
    for step in (1, 2, 3, 4):
        alike = float((kept[:-step] == kept[step:]).float().mean())
        assert abs(alike - expected) < 5 * (expected * (1 - expected) / len(kept)) ** 0.5 + 0.001


def test_the_same_seed_drops_the_same():
    first, second = (torch.manual_seed(3) and drop(X, 0.3) for _ in range(2))
    assert torch.equal(first, second)
    assert drop(X, 0.0) is X


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_go_back_through_what_is_kept(dtype):
    rows = X[:3, :5].to(dtype).requires_grad_()

    Y = drop(rows, 0.4)

    gradient = torch.autograd.grad(Y.sum(), rows)[0]
    torch.testing.assert_close(gradient * rows, Y)


@pytest.mark.gpu
def test_numbers_are_dropped_on_the_gpu():
    Y = drop(X.cuda(), 0.3)
    assert Y.device.type == "cuda" and 0.2 < float((Y == 0).float().mean()) < 0.4


@pytest.mark.parametrize("rate", [-0.1, 1.0, float("nan")])
def test_impossible_rates(rate):
    with pytest.raises(ValueError, match="EL191"):
        Dropout(rate)
