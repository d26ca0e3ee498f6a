"""A linear layer over arrays side by side."""

import pytest
import torch
from torch import nn

from spacy_elmo.tasks.shared.dropout import drop
from spacy_elmo.tasks.shared.wide_linear import map_parts


@pytest.mark.parametrize("widths", [[3], [3, 1, 2]])
def test_it_is_the_layer_over_one_array(widths):
    torch.manual_seed(0)
    linear = nn.Linear(sum(widths), 4).double()
    parts = [torch.randn(5, n, dtype=torch.double, requires_grad=True) for n in widths]
    expected = linear(torch.cat(parts, -1))
    torch.testing.assert_close(map_parts(linear, parts, 0.0), expected)
    inputs = [*parts, *linear.parameters()]
    for own, other in zip(
        torch.autograd.grad(map_parts(linear, parts, 0.0).square().sum(), inputs),
        torch.autograd.grad(expected.square().sum(), inputs),
    ):
        torch.testing.assert_close(own, other)


def test_each_part_is_dropped_from():
    linear = nn.Linear(600, 1, bias=True)
    nn.init.ones_(linear.weight)
    nn.init.zeros_(linear.bias)
    parts = [torch.ones(200, 200), torch.ones(200, 400)]
    torch.manual_seed(0)
    found = map_parts(linear, parts, 0.5)
    torch.manual_seed(0)
    expected = sum(drop(part, 0.5).sum(1, keepdim=True) for part in parts)
    torch.testing.assert_close(found, expected)
    assert found.std() > 10 and abs(found.mean() - 600) < 10


def test_other_widths_are_an_error():
    with pytest.raises(RuntimeError, match="split"):
        map_parts(nn.Linear(4, 2), [torch.ones(1, 3)], 0.0)
