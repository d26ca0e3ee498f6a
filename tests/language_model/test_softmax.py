import numpy as np
import pytest
import torch
from torch.nn import functional as F

from spacy_elmo.language_model.softmax import (
    AdaptiveSoftmax,
    SampledSoftmax,
    Softmax,
    softmax_loss,
)

# More rows than the loss reads at a time.
WIDTH, N_WORDS, N_ROWS = 8, 50, 600


@pytest.fixture
def rows():
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(N_ROWS, WIDTH, generator=generator)
    return hidden, torch.randint(0, N_WORDS, (N_ROWS,), generator=generator)


@pytest.mark.parametrize("cls, settings", [(Softmax, {}), (AdaptiveSoftmax, {"cutoffs": [10, 20]})])
def test_the_loss_and_its_gradients_are_those_of_log_probs(cls, settings, rows):
    softmax = cls(WIDTH, N_WORDS, **settings)
    hidden, targets = rows[0].clone().requires_grad_(), rows[1]
    log_probs = softmax.log_probs(hidden)
    wanted = [hidden, *softmax.parameters()]

    loss = softmax.loss(hidden, targets)
    expected = F.nll_loss(log_probs, targets, reduction="sum")

    torch.testing.assert_close(log_probs.exp().sum(1), torch.ones(N_ROWS))
    torch.testing.assert_close(loss, expected)
    pairs = zip(torch.autograd.grad(3 * loss, wanted), torch.autograd.grad(3 * expected, wanted))
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_the_fused_loss_has_the_gradients_of_finite_differences():
    generator = torch.Generator().manual_seed(1)
    shapes = [(7, 3), (5, 3), (5,), (7,)]
    arguments = [
        torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in shapes
    ]
    hits = torch.tensor([-1, 0, 4, -1, 2, 2, -1])

    assert torch.autograd.gradcheck(lambda *a: softmax_loss(*a, hits), arguments)


def test_half_precision_changes_the_loss_little(rows):
    softmax = Softmax(WIDTH, N_WORDS)
    hidden, targets = rows[0].clone().requires_grad_(), rows[1]
    wanted = [hidden, softmax.weight, softmax.bias]
    with torch.autocast("cpu", torch.bfloat16):
        half = softmax.loss(hidden, targets)
    full = softmax.loss(hidden, targets)

    assert half.item() == pytest.approx(full.item(), rel=1e-2)
    pairs = zip(torch.autograd.grad(half, wanted), torch.autograd.grad(full, wanted))
    for a, b in pairs:
        assert (a - b).norm() < 0.01 * b.norm()


def test_sampling_every_word_is_exact(rows):
    torch.manual_seed(0)
    sampled = SampledSoftmax(WIDTH, N_WORDS, n_samples=100_000)
    hidden, targets = rows

    expected = F.nll_loss(sampled.log_probs(hidden), targets, reduction="sum")

    torch.testing.assert_close(sampled.loss(hidden, targets), expected, rtol=1e-4, atol=1e-3)


def test_draws_are_log_uniform_and_the_correction_knows_it():
    torch.manual_seed(0)
    n_samples, n_trials = 20, 1500
    softmax = SampledSoftmax(1, 30, n_samples=n_samples)
    share = np.log((np.arange(30) + 2) / (np.arange(30) + 1)) / np.log(31)

    expected = 1 - (1 - share) ** n_samples

    np.testing.assert_allclose(softmax.log_expected.exp().numpy(), expected, rtol=1e-5)
    # The draw itself, seen through the gradient: only drawn words and targets get one.
    seen = np.zeros(30)
    hidden, target = torch.zeros(1, 1), torch.tensor([29])
    for _ in range(n_trials):
        (gradient,) = torch.autograd.grad(softmax.loss(hidden, target), softmax.bias)
        seen += gradient.numpy() != 0
    np.testing.assert_allclose(seen[:29] / n_trials, expected[:29], atol=0.05)
