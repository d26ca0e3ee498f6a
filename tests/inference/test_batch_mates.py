"""A vector depends on its own words alone: up to float noise with float32, to the bit with
the other precisions."""

import random

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.inference import engine as inference
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.inference.packed_layers import PackedLinear, _is_supported, round_rows

PRECISIONS = [
    pytest.param(name, marks=pytest.mark.skipif(not _is_supported(name, "cpu"), reason="not here"))
    for name in ("fp32", "bf16", "fp16", "int8")
]
# Widths in multiples of 16, as all published models have them.
SHAPES = {
    "narrow": {"width": 64, "cell_width": 48, "filters": [[1, 16], [3, 16], [5, 16]]},
    "plain": {"width": 128, "cell_width": 64, "projection": False, "filters": [[1, 16], [3, 32]]},
    # Large enough for packed weights, and for the one row that would take another kernel.
    "clipped": {"width": 256, "cell_width": 1024, "cell_clip": 3.0, "proj_clip": 3.0, "depth": 1},
}


def make_config(shape):
    return BiLMConfig(**{"projection": True, **SHAPES[shape]})


def require_equal(found, expected, precision):
    for a, b in zip(found, expected):
        if precision == "fp32":
            np.testing.assert_allclose(a, b, atol=1e-5, rtol=0)
        else:
            np.testing.assert_array_equal(a, b)


def make_sentences(n_sentences=18):
    rng = random.Random(0)
    words = [f"w{i}" * (1 + i % 5) for i in range(300)]
    return [rng.choices(words, k=rng.randint(1, 12)) for _ in range(n_sentences)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_sentence_alone_is_the_same_sentence_in_any_batch(monkeypatch, shape, precision):
    monkeypatch.setattr(inference, "_LEAST_ROWS", 2)
    torch.manual_seed(0)
    bilm = BiLM(make_config(shape)).requires_grad_(False)
    # As large as trained ones: small numbers hide what is rounded otherwise.
    for weight in bilm.parameters():
        weight.mul_(1.5)
    sentences = make_sentences()
    alone = Embedder(bilm, precision=precision, word_cache=0)
    expected = [alone.embed([words])[0] for words in sentences]

    order = random.Random(1).sample(range(len(sentences)), len(sentences))
    for settings in (
        {"batch_tokens": 10, "n_threads": 1},
        {"word_cache": 20, "batch_tokens": 60},
        {"n_threads": 5, "word_cache": 0},
    ):
        found = Embedder(bilm, precision=precision, **settings).embed([sentences[i] for i in order])
        require_equal(found, [expected[i] for i in order], precision)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_states_do_not_depend_on_batch_mates(precision):
    torch.manual_seed(0)
    embedder = Embedder(BiLM(make_config("narrow")), precision=precision)
    first, second = make_sentences()[:9], make_sentences()[9:18]

    _, state = embedder.embed_stateful(first)
    together, _ = embedder.embed_stateful(second, state)

    for row in range(9):
        _, own = embedder.embed_stateful([first[row]])
        alone, _ = embedder.embed_stateful([second[row]], own)
        require_equal(alone, [together[row]], precision)


@pytest.mark.parametrize("sizes", [(48, 32), (128, 512), (4096, 512)])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_row_of_a_product_does_not_depend_on_the_others(sizes, precision):
    if precision == "fp32":
        pytest.skip("up to float noise")
    torch.manual_seed(0)
    linear = PackedLinear(torch.randn(sizes) * sizes[0] ** -0.5, None, precision)
    X = torch.randn(320, sizes[0])
    expected = linear(X)

    for n in sorted({round_rows(n, least=2) for n in range(1, 321)}):
        assert torch.equal(linear(X[:n].clone()), expected[:n]), n
