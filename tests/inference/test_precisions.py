"""Products in each precision: how exact they are, that batch mates change nothing, and that torch's
plain products replace operators of oneDNN that are missing."""

import copy
import os
import random
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.batch import make_batch
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.inference import engine as inference
from spacy_elmo.inference import packed_layers
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.inference.packed_layers import (
    MOST_ROUNDING,
    _is_supported,
    pack_linear,
    require_precision,
    round_rows,
)

from ..support.helpers import assert_close

PRECISIONS = [
    pytest.param(name, marks=pytest.mark.skipif(not _is_supported(name, "cpu"), reason="not here"))
    for name in ("fp32", "bf16", "fp16", "int8")
]
# Widths in multiples of 16, as all published models have them.
SHAPES = {
    "narrow": {"width": 64, "cell_width": 48, "filters": [[1, 16], [3, 16], [5, 16]]},
    # Large enough for packed weights, and for the one row that would take another kernel.
    "clipped": {"width": 256, "cell_width": 1024, "cell_clip": 3.0, "proj_clip": 3.0, "depth": 1},
}


def make_bilm(shape):
    torch.manual_seed(0)
    return BiLM(BiLMConfig(**{"projection": True, **SHAPES[shape]})).requires_grad_(False)


def require_equal(found, expected, precision):
    for a, b in zip(found, expected, strict=True):
        if precision == "fp32":
            np.testing.assert_allclose(a, b, atol=1e-5, rtol=0)
        else:
            np.testing.assert_array_equal(a, b)


def make_sentences(n_sentences=18):
    rng = random.Random(0)
    words = [f"w{i}" * (1 + i % 5) for i in range(300)]
    return [rng.choices(words, k=rng.randint(1, 12)) for _ in range(n_sentences)]


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_rows_are_rounded_up_in_order_to_few_numbers(a, b):
    assert a <= round_rows(a) < a + MOST_ROUNDING
    assert (round_rows(a) <= round_rows(b)) if a <= b else True
    assert round_rows(round_rows(a)) == round_rows(a)
    assert len({round_rows(n) for n in range(1, 400)}) < 30


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_sentence_alone_is_the_same_in_any_batch(monkeypatch, shape, precision):
    monkeypatch.setattr(inference, "_LEAST_ROWS", 2)
    bilm = make_bilm(shape)
    # As large as trained ones: small numbers hide differences of rounding.
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


@pytest.mark.parametrize("sizes", [(48, 32), (128, 512), (4096, 512)])
@pytest.mark.parametrize("precision", PRECISIONS[1:])
def test_a_row_of_a_product_does_not_depend_on_the_others(sizes, precision):
    torch.manual_seed(0)
    linear = pack_linear(torch.randn(sizes) * sizes[0] ** -0.5, None, precision)
    X = torch.randn(320, sizes[0])
    expected = linear(X)

    for n in sorted({round_rows(n, least=2) for n in range(1, 321)}):
        assert torch.equal(linear(X[:n].clone()), expected[:n]), n


LEAST = {
    "fp32": (0.0, 1 - 1e-10),
    "bf16": (1e-4, 0.999),
    "fp16": (1e-5, 0.9999),
    "int8": (1e-4, 0.99),
}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_precisions_agree_with_float64(precision):
    least, cosine = LEAST[precision]
    bilm, sentences = make_bilm("narrow"), make_sentences()
    batch, double = make_batch(sentences), copy.deepcopy(bilm).double()
    exact = double(batch).numpy().reshape(-1, 64)

    arrays = [a.transpose(1, 0, 2) for a in Embedder(bilm, precision=precision).embed(sentences)]
    found = np.concatenate(arrays).reshape(-1, 64).astype("float64")

    norms = np.linalg.norm(exact, axis=1) * np.linalg.norm(found, axis=1)
    assert ((exact * found).sum(axis=1) / norms).min() > cosine
    # Float noise alone with float32; more with the others, or they were not used.
    assert least < abs(exact - found).max() < (1e-5 if precision == "fp32" else 0.5)


# ---- without oneDNN

PRODUCTS = ["mkldnn._reorder_linear_weight", "mkldnn._linear_pointwise"]
SHORT = {
    "int8": ["onednn.qlinear_prepack", "onednn.qlinear_pointwise"],
    "bf16": ["mkldnn._is_mkldnn_bf16_supported"],
    "fp16": ["mkldnn._is_mkldnn_fp16_supported"],
}
ERRORS = {
    "gone": AttributeError("'_OpNamespace' 'mkldnn' object has no attribute"),
    "not compiled": RuntimeError("mkldnn_linear: ATen not compiled with MKLDNN support"),
}
SENTENCES = [["I", "like", "green", "eggs", "and", "ham"], ["Ham"], ["eggs", "eggs", "I"]]


class Broken:
    """Operators, one of which raises when it is looked up or when it is called."""

    def __init__(self, namespace, name, error):
        self._namespace, self._name, self._error = namespace, name, error

    def __getattr__(self, name):
        if name != self._name:
            return getattr(self._namespace, name)
        if isinstance(self._error, AttributeError):
            raise self._error
        return self._raise

    def _raise(self, *args):
        raise self._error


def break_operator(monkeypatch, operator, error):
    space, name = operator.split(".")
    monkeypatch.setattr(torch.ops, space, Broken(getattr(torch.ops, space), name, error))


@pytest.fixture
def packed(monkeypatch):
    """Small products are packed, too."""
    monkeypatch.setattr(packed_layers, "_LEAST_PACKED", 0)


def is_packed():
    return pack_linear(torch.ones(4, 4)).packed is not None


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("operator", PRODUCTS)
def test_vectors_are_the_same_without_an_operator(monkeypatch, packed, operator, error):
    bilm = make_bilm("narrow")
    expected = Embedder(bilm).embed(SENTENCES)
    break_operator(monkeypatch, operator, error)

    assert not is_packed()
    assert_close(Embedder(bilm).embed(SENTENCES), expected, 1e-5)


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("precision, operator", [(p, o) for p in SHORT for o in SHORT[p]])
def test_a_precision_without_its_operators_is_refused(monkeypatch, precision, operator, error):
    break_operator(monkeypatch, operator, error)

    with pytest.raises(ValueError, match=f"EL016.*{precision}.*only: fp32"):
        Embedder(make_bilm("narrow"), precision=precision).embed(SENTENCES)


def test_short_types_take_plain_products_too(monkeypatch):
    try:
        require_precision("bf16", "cpu")
    except ValueError:
        pytest.skip("no bfloat16 here")
    bilm = make_bilm("narrow")
    expected = Embedder(bilm, precision="bf16").embed(SENTENCES)
    break_operator(monkeypatch, PRODUCTS[0], RuntimeError("no"))

    assert_close(Embedder(bilm, precision="bf16").embed(SENTENCES), expected, 2e-2)


def test_vectors_are_the_same_with_onednn_off(packed):
    bilm = make_bilm("narrow")
    expected = Embedder(bilm).embed(SENTENCES)
    with warnings.catch_warnings():
        # Of a flag for GPUs of another make.
        warnings.filterwarnings("ignore", ".*TF32.*")
        with torch.backends.mkldnn.flags(enabled=False):
            assert not is_packed()
            found = Embedder(bilm).embed(SENTENCES)
            with pytest.raises(ValueError, match="EL016.*only: fp32"):
                Embedder(bilm, precision="int8").embed(SENTENCES)

    assert_close(found, expected, 1e-5)


def test_a_product_that_disagrees_is_not_used(monkeypatch):
    monkeypatch.setattr(packed_layers, "_multiply_packed", lambda X, packed, bias: X * 0.0)
    X, W = torch.randn(3, 4), torch.randn(4, 4)

    assert_close([pack_linear(W)(X)], [X @ W], 1e-6)


CODE = """
import sys
import numpy, torch
from spacy_elmo.inference import packed_layers
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.bilm.model import BiLM
packed_layers._LEAST_PACKED = 0
torch.manual_seed(0)
sizes = dict(width=32, cell_width=32, projection=True, char_width=4)
bilm = BiLM(BiLMConfig(**sizes, filters=[[1, 8], [3, 8]]))
exact = None
for precision in packed_layers.PRECISIONS:
    try:
        arrays = Embedder(bilm, precision=precision).embed([["green", "eggs"], ["ham"]])
    except ValueError as err:
        assert "EL016" in str(err)
        continue
    found = numpy.concatenate([array.ravel() for array in arrays])
    exact = found if exact is None else exact
    assert abs(found - exact).max() < 0.05, precision
numpy.save(sys.argv[1], exact)
"""


@pytest.mark.slow
def test_vectors_are_the_same_on_older_processors(tmp_path):
    arrays = []
    for changes in (
        {},
        {"ONEDNN_MAX_CPU_ISA": "SSE41"},
        {"ONEDNN_MAX_CPU_ISA": "AVX2"},
        {"ATEN_CPU_CAPABILITY": "default"},
    ):
        path = tmp_path / f"{len(arrays)}.npy"
        variables = {**os.environ, **changes}
        subprocess.run([sys.executable, "-c", CODE, path], env=variables, check=True, timeout=280)
        arrays.append(np.load(path))

    for array in arrays[1:]:
        np.testing.assert_allclose(array, arrays[0], atol=1e-5)
