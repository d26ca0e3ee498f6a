"""Flags of torch that the LSTM on a GPU sets for a moment."""

import threading

import pytest
import torch
from torch.backends import cudnn

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.lstm import LSTMLayer
from spacy_elmo.inference.packed_layers import TorchLSTM

from ..support.helpers import SHAPE


@pytest.fixture
def layer():
    return TorchLSTM(LSTMLayer(BiLMConfig(**SHAPE)).requires_grad_(False), torch.float32)


def run(layer):
    state = torch.zeros(2, SHAPE["width"] // 2), torch.zeros(2, SHAPE["cell_width"])
    return layer(torch.randn(6, SHAPE["width"] // 2), [2, 2, 2], state)


def test_flags_of_torch_are_left_as_they_were_by_many_threads(layer):
    before = cudnn.enabled, cudnn.allow_tf32

    threads = [threading.Thread(target=lambda: [run(layer) for _ in range(300)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (cudnn.enabled, cudnn.allow_tf32) == before


@pytest.mark.skipif(not hasattr(cudnn, "rnn"), reason="older torch has one flag")
@pytest.mark.parametrize("precision", ["ieee", "tf32"])
def test_a_precision_that_the_user_chose_is_no_error(layer, precision):
    before = cudnn.rnn.fp32_precision
    cudnn.rnn.fp32_precision = precision
    try:
        assert torch.isfinite(run(layer)[0]).all()
        assert cudnn.rnn.fp32_precision == precision and cudnn.enabled
    finally:
        cudnn.rnn.fp32_precision = before
