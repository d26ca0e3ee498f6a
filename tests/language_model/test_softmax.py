import numpy as np
import pytest
import torch
from torch.nn import functional as F

from spacy_elmo.language_model.softmax import (
    AdaptiveSoftmax,
    SampledSoftmax,
    Softmax,
    make_softmax,
    softmax_loss,
)

# More rows than the loss reads at a time.
WIDTH, N_WORDS, N_ROWS = 8, 50, 600


@pytest.fixture
def rows():
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(N_ROWS, WIDTH, generator=generator)
    return hidden, torch.randint(0, N_WORDS, (N_ROWS,), generator=generator)


@pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
def test_log_probs_are_a_distribution(kind, rows):
    softmax = make_softmax(
        kind, WIDTH, N_WORDS, **({"cutoffs": [10]} if kind == "adaptive" else {})
    )

    log_probs = softmax.log_probs(rows[0])

    assert log_probs.shape == (N_ROWS, N_WORDS)
    torch.testing.assert_close(log_probs.exp().sum(1), torch.ones(N_ROWS))


@pytest.mark.parametrize("cls, settings", [(Softmax, {}), (AdaptiveSoftmax, {"cutoffs": [10, 20]})])
def test_exact_losses_are_what_log_probs_say(cls, settings, rows):
    softmax = cls(WIDTH, N_WORDS, **settings)
    hidden, targets = rows

    expected = F.nll_loss(softmax.log_probs(hidden), targets, reduction="sum")

    torch.testing.assert_close(softmax.loss(hidden, targets), expected)


def test_gradients_of_the_full_loss_are_those_of_cross_entropy(rows):
    softmax = Softmax(WIDTH, N_WORDS)
    hidden, targets = rows[0].clone().requires_grad_(), rows[1]
    wanted = [hidden, softmax.weight, softmax.bias]

    ours = torch.autograd.grad(3 * softmax.loss(hidden, targets), wanted)
    expected = torch.autograd.grad(
        3 * F.cross_entropy(softmax.logits(hidden), targets, reduction="sum"), wanted
    )

    for a, b in zip(ours, expected):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


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


def test_a_sampled_loss_leads_to_the_frequencies_of_the_words():
    torch.manual_seed(0)
    truth = torch.tensor([0.5, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05, 0.03, 0.02])
    softmax = SampledSoftmax(2, 10, n_samples=4)
    optimizer = torch.optim.Adam(softmax.parameters(), lr=0.03)
    hidden = torch.zeros(512, 2)
    for step in range(600):
        optimizer.param_groups[0]["lr"] = 0.03 * (1 - step / 600)
        targets = torch.multinomial(truth, 512, replacement=True)
        optimizer.zero_grad()
        (softmax.loss(hidden, targets) / 512).backward()
        optimizer.step()

    learned = softmax.log_probs(hidden[:1])[0].exp().detach()
    assert float((learned - truth).abs().max()) < 0.04


@pytest.mark.parametrize(
    "kind, settings, problem",
    [
        ("best", {}, "there is no 'best'"),
        ("full", {"n_samples": 3}, "n_samples"),
        ("adaptive", {"cutoffs": [100]}, "cutoffs = .100.*below the 50 words"),
        ("sampled", {"n_samples": 0}, "n_samples = 0"),
    ],
)
def test_impossible_softmaxes_are_refused(kind, settings, problem):
    with pytest.raises(ValueError, match=f"EL073.*{problem}"):
        make_softmax(kind, WIDTH, N_WORDS, **settings)
