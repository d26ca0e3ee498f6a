"""Where modules lie: on the processor unless Thinc has a GPU of NVIDIA's."""

import threading

import pytest
import spacy
import torch
from torch.backends import cudnn

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.lstm import LSTMLayer
from spacy_elmo.inference.packed_layers import TorchLSTM
from spacy_elmo.layers import torch_shim
from spacy_elmo.layers.elmo_layers import get_embedder

from ..support.helpers import SHAPE, TEXTS, assert_close
from ..support.toy_tasks import make_task


def test_a_mac_with_a_gpu_computes_on_its_processor(monkeypatch, tmp_path):
    """There `spacy.prefer_gpu()` has Thinc say "mps"; here torch has no such device."""
    monkeypatch.setattr(torch_shim, "get_torch_default_device", lambda: torch.device("mps"))

    nlp = make_task("elmo_qa")
    expected = nlp(TEXTS[0]).tensor
    nlp.to_disk(tmp_path)
    read = spacy.load(tmp_path)

    for pipeline in (nlp, read):
        assert get_embedder(pipeline.get_pipe("elmo").model).bilm.device.type == "cpu"
        (shim,) = pipeline.get_pipe("elmo_qa").model.layers[1].shims
        assert shim.device.type == "cpu"
    assert_close(read(TEXTS[0]).tensor, expected)


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
