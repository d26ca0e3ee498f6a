"""The convolutions of training: torch's own are the oracle."""

import pytest
import torch
from torch.nn import functional as F

from spacy_elmo.bilm.char_cnn import run_filters

SHAPES = {
    "rising widths": ((1, 3), (2, 2), (4, 3)),
    "not in order, a width twice": ((3, 2), (1, 3), (3, 1)),
    "as wide as a word": ((9, 4),),
}
N_CHARS, CHAR_WIDTH, PADDING = 9, 4, 11


def make_words(lengths, seed=0):
    """Character ids of words, padded; one of them has the same character all along."""
    torch.manual_seed(seed)
    ids = torch.randint(0, PADDING, (len(lengths), N_CHARS))
    ids[0] = 2
    for row, length in zip(ids, lengths):
        row[length:] = PADDING
    return ids, torch.tensor(lengths)


def make_weights(filters, dtype=torch.float64):
    torch.manual_seed(1)
    embedding = torch.randn(PADDING + 1, CHAR_WIDTH, dtype=dtype, requires_grad=True)
    weights = [torch.randn(n, CHAR_WIDTH, w, dtype=dtype, requires_grad=True) for w, n in filters]
    biases = [torch.randn(n, dtype=dtype, requires_grad=True) for _, n in filters]
    return embedding, weights, biases


def convolve(ids, embedding, weights, biases):
    X = embedding[ids].transpose(1, 2)
    return torch.cat([F.conv1d(X, w, b).amax(dim=2) for w, b in zip(weights, biases)], dim=1)


@pytest.mark.parametrize("filters", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize(
    "lengths", [[5, 3, 9, 4, 8, 7], [3], [9, 9]], ids=["mixed", "one", "no padding"]
)
def test_answers_and_gradients_are_those_of_a_convolution(filters, lengths):
    ids, n_used = make_words(lengths)
    embedding, weights, biases = make_weights(filters)

    ours = run_filters(embedding[ids], n_used, embedding[PADDING], weights, biases)
    theirs = convolve(ids, embedding, weights, biases)

    torch.testing.assert_close(ours, theirs)
    factors = torch.randn_like(ours)
    variables = [embedding, *weights, *biases]
    for a, b in zip(*(torch.autograd.grad((Y * factors).sum(), variables) for Y in (ours, theirs))):
        torch.testing.assert_close(a, b)


def test_gradients_are_those_of_finite_differences():
    ids, n_used = make_words([5, 3, 9, 4])
    embedding, weights, biases = make_weights(SHAPES["rising widths"])
    n = len(weights)

    def run(embedding, *parts):
        return run_filters(embedding[ids], n_used, embedding[PADDING], parts[:n], parts[n:])

    # Of a word with one character all along several places win at once: no gradient there.
    ids, n_used = ids[1:], n_used[1:]
    assert torch.autograd.gradcheck(run, (embedding, *weights, *biases))


def test_products_take_the_type_of_autocast_and_sums_stay_exact():
    ids, n_used = make_words([5, 3, 9, 4, 8, 7])
    embedding, weights, biases = make_weights(SHAPES["rising widths"], torch.float32)
    variables = [embedding, *weights, *biases]

    with torch.autocast("cpu", torch.bfloat16):
        ours = run_filters(embedding[ids], n_used, embedding[PADDING], weights, biases)
    theirs = convolve(ids, embedding, weights, biases)

    assert ours.dtype == torch.bfloat16
    torch.testing.assert_close(ours.float(), theirs, atol=0.1, rtol=0.02)
    found, expected = (torch.autograd.grad(Y.float().sum(), variables) for Y in (ours, theirs))
    for a, b in zip(found, expected):
        assert a.dtype == torch.float32
        # Which of two places that are nearly alike wins is chance.
        assert F.cosine_similarity(a.flatten(), b.flatten(), dim=0) > 0.98
