"""The architecture for `textcat`."""

import numpy as np
import torch

from spacy_elmo.tasks.sentiment import BCN


def oracle(module, X):
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


def test_the_network_is_that_of_the_paper():
    torch.manual_seed(0)
    module, lengths = BCN(5, 6, 3), [4, 1, 9]
    X = torch.randn(14, 5)
    with torch.no_grad():
        expected = torch.stack([oracle(module, part) for part in X.split(lengths)])
        np.testing.assert_allclose(module(X, lengths), expected, atol=1e-6)


def test_gradients_are_those_of_finite_differences():
    torch.manual_seed(0)
    module = BCN(3, 4, 2).double()
    X = torch.randn(6, 3, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda X: module(X, [2, 4]), X)
