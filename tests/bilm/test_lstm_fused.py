"""The steps that a GPU does in one kernel give the numbers and the gradient of the plain ones."""

from types import SimpleNamespace

import pytest
import torch

from spacy_elmo.bilm import lstm
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.lstm import LSTMLayer, run_layer

from ..support.helpers import assert_close
from ..support.packed_oracle import run_packed

BATCH_SIZES = [3, 3, 2, 1]


def run_cell(first, second, before):
    """The kernel's formulas, with torch's order of gates."""
    i, f, j, o = (first + second).chunk(4, dim=1)
    i, f, j, o = i.sigmoid(), f.sigmoid(), j.tanh(), o.sigmoid()
    cell = f * before + i * j
    return o * cell.tanh(), cell, torch.cat([i, f, j, o], dim=1)


def run_cell_back(dm, dc, before, cell, a):
    i, f, j, o = a.chunk(4, dim=1)
    t = cell.tanh()
    d_cell = dc + dm * o * (1 - t * t)
    d_gates = [
        d_cell * j * i * (1 - i),
        d_cell * before * f * (1 - f),
        d_cell * i * (1 - j * j),
        dm * t * o * (1 - o),
    ]
    return torch.cat(d_gates, dim=1), d_cell * f


def make_layer(projection, clip=None, dtype=torch.float64):
    torch.manual_seed(0)
    config = BiLMConfig(
        width=8, cell_width=5 if projection else 4, projection=projection, proj_clip=clip
    )
    layer = LSTMLayer(config).to(dtype)
    state = torch.randn(3, 4, dtype=dtype), torch.randn(3, config.cell_width, dtype=dtype)
    return layer, torch.randn(9, 4, dtype=dtype), state


def run(layer, X, state, dtype=None):
    """RETURNS outputs, last state, and the gradients of all that is put in."""
    inputs = [X, *state, *layer.parameters()]
    inputs = [part.detach().requires_grad_() for part in inputs]
    weight, bias, *projection = inputs[3:]
    Y, last = run_layer(
        inputs[0], weight, bias, projection[0] if projection else None, tuple(inputs[1:3]),
        BATCH_SIZES, None, layer.proj_clip, dtype,
    )  # fmt: skip
    results = [Y, *last]
    sum((part * (k + 2)).square().sum() for k, part in enumerate(results)).backward()
    return [part.detach().cpu() for part in results + [part.grad for part in inputs]]


@pytest.mark.parametrize("projection", [True, False])
@pytest.mark.parametrize("clip", [None, 0.3])
def test_the_steps_are_the_plain_ones_whatever_the_order_of_gates(projection, clip, monkeypatch):
    layer, X, state = make_layer(projection, clip)
    expected = run(layer, X, state)
    monkeypatch.setattr(lstm, "can_fuse", lambda X, clip: True)
    monkeypatch.setattr(lstm, "run_cell", run_cell)
    monkeypatch.setattr(lstm, "run_cell_back", run_cell_back)

    found = run(layer, X, state)

    assert_close(found[:3], run_packed(layer, X, BATCH_SIZES, state), 1e-12)
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other)


def test_a_clip_of_cells_and_a_processor_have_no_such_kernel():
    assert not lstm.can_fuse(torch.zeros(1), None)


def test_a_torch_without_the_kernels_does_without(monkeypatch):
    assert lstm.has_kernels()
    on_gpu = SimpleNamespace(is_cuda=True)
    assert lstm.can_fuse(on_gpu, None) and not lstm.can_fuse(on_gpu, 1.0)
    monkeypatch.setattr(lstm, "_KERNELS", ("_no_such_kernel",))
    assert not lstm.can_fuse(on_gpu, None)


@pytest.mark.gpu
@pytest.mark.parametrize("projection", [True, False])
@pytest.mark.parametrize("clip", [None, 0.3])
def test_the_kernel_of_a_gpu_gives_the_numbers_of_a_processor(projection, clip):
    layer, X, state = make_layer(projection, clip)
    expected = run(layer, X, state)
    on_gpu = layer.cuda(), X.cuda(), tuple(part.cuda() for part in state)
    assert lstm.can_fuse(on_gpu[1], None) and not lstm.can_fuse(on_gpu[1], 1.0)

    for one, other in zip(run(*on_gpu), expected):
        torch.testing.assert_close(one, other)


@pytest.mark.gpu
def test_the_kernel_multiplies_in_its_type(monkeypatch):
    monkeypatch.setattr(lstm, "can_use_cudnn", lambda *arguments: False)
    layer, X, state = make_layer(True, dtype=torch.float32)
    expected = run(layer, X, state)
    on_gpu = layer.cuda(), X.cuda(), tuple(part.cuda() for part in state)

    for one, other in zip(run(*on_gpu, dtype=torch.bfloat16), expected):
        assert one.dtype == torch.float32
        assert_close(one, other, 0.05 * max(1.0, float(other.abs().max())))
