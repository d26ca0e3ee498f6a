"""torch's own LSTM, cuDNN's on a GPU, gives the numbers and the gradient of the steps."""

from types import SimpleNamespace

import pytest
import torch

from spacy_elmo.bilm import lstm
from spacy_elmo.bilm.lstm import can_use_cudnn

from .test_lstm_fused import make_layer, run

HALVES = torch.bfloat16, torch.float16


@pytest.mark.parametrize("projection", [True, False])
def test_it_is_the_layer_step_by_step(projection, monkeypatch):
    layer, X, state = make_layer(projection)
    expected = run(layer, X, state)
    monkeypatch.setattr(lstm, "can_use_cudnn", lambda *arguments: True)

    for one, other in zip(run(layer, X, state), expected, strict=True):
        torch.testing.assert_close(one, other)


def test_inputs_may_be_of_the_short_type(monkeypatch):
    layer, X, state = make_layer(True, dtype=torch.float32)
    X = X.bfloat16()
    expected = run(layer, X.float(), state)
    monkeypatch.setattr(lstm, "can_use_cudnn", lambda *arguments: True)

    found = run(layer, X, state)

    assert found[0].dtype == torch.float32 and found[3].dtype == torch.bfloat16
    torch.testing.assert_close(found[:3], expected[:3])


def make_cell(**kind):
    return SimpleNamespace(**{"is_cuda": True, "dtype": torch.float32, **kind})


@pytest.mark.parametrize("dtype", HALVES)
def test_it_is_taken_where_products_are_short_and_nothing_is_clipped(dtype, monkeypatch):
    monkeypatch.setattr(lstm, "_is_there", lambda: True)
    P, free = torch.zeros(5, 4), (None, None)

    assert can_use_cudnn(make_cell(), P, free, dtype)
    assert can_use_cudnn(make_cell(), None, free, dtype)
    assert not can_use_cudnn(make_cell(), P[:4], free, dtype)
    assert not can_use_cudnn(make_cell(), P, free, torch.float32)
    assert not can_use_cudnn(make_cell(), P, (None, 1.0), dtype)
    assert not can_use_cudnn(make_cell(), P, (1.0, None), dtype)
    assert not can_use_cudnn(make_cell(is_cuda=False), P, free, dtype)
    assert not can_use_cudnn(make_cell(dtype=torch.float64), P, free, dtype)


def test_it_is_not_taken_where_cudnn_is_off(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "enabled", False)
    assert not can_use_cudnn(make_cell(), None, (None, None), torch.bfloat16)


@pytest.mark.gpu
@pytest.mark.parametrize("projection", [True, False])
def test_cudnn_gives_the_numbers_of_a_processor(projection, monkeypatch):
    layer, X, state = make_layer(projection, dtype=torch.float32)
    expected = run(layer, X, state)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    monkeypatch.setattr(lstm, "can_fuse", None)  # not reached
    on_gpu = layer.cuda(), X.cuda(), tuple(part.cuda() for part in state)

    for one, other in zip(run(*on_gpu, dtype=torch.bfloat16), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
