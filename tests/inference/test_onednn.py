"""Without oneDNN, or with an operator of it that is not there, torch's plain products make
the same vectors."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.inference import packed_layers as packed_linear
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.inference.packed_layers import PackedLinear, require_precision

from ..support.helpers import SHAPE, assert_close

PRODUCTS = ["mkldnn._reorder_linear_weight", "mkldnn._linear_pointwise"]
INT8 = ["onednn.qlinear_prepack", "onednn.qlinear_pointwise"]
CHECKS = ["mkldnn._is_mkldnn_bf16_supported", "mkldnn._is_mkldnn_fp16_supported"]
OPERATORS = [*PRODUCTS, *INT8, *CHECKS]
# What a missing operator raised in some build, or could.
ERRORS = {
    "gone": AttributeError("'_OpNamespace' 'mkldnn' object has no attribute"),
    "not compiled": RuntimeError("mkldnn_linear: ATen not compiled with MKLDNN support"),
    "other arguments": TypeError("missing value for argument"),
    "no library": OSError("libdnnl.so: cannot open shared object file"),
}
SENTENCES = [["I", "like", "green", "eggs", "and", "ham"], ["Ham"], ["eggs", "eggs", "I"]]


class _Namespace:
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
    monkeypatch.setattr(torch.ops, space, _Namespace(getattr(torch.ops, space), name, error))


@pytest.fixture(autouse=True)
def everything_packed(monkeypatch):
    monkeypatch.setattr(packed_linear, "_LEAST_PACKED", 0)


@pytest.fixture
def bilm():
    torch.manual_seed(0)
    return BiLM(BiLMConfig(**{**SHAPE, "width": 64, "cell_width": 48})).requires_grad_(False)


def is_packed():
    return PackedLinear(torch.ones(4, 4))._multiply.packed is not None


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_vectors_are_the_same_without_an_operator(monkeypatch, bilm, operator, error):
    expected = Embedder(bilm).embed(SENTENCES)
    break_operator(monkeypatch, operator, error)

    assert is_packed() == (operator not in PRODUCTS)
    assert_close(Embedder(bilm).embed(SENTENCES), expected, 1e-5)


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("operator", INT8)
def test_eight_bits_are_refused_without_an_operator(monkeypatch, bilm, operator, error):
    break_operator(monkeypatch, operator, error)

    with pytest.raises(ValueError, match="EL016.*int8.*only for: fp32"):
        Embedder(bilm, precision="int8").embed(SENTENCES)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_short_types_are_refused_where_nothing_tells(monkeypatch, bilm, precision, error):
    break_operator(monkeypatch, f"mkldnn._is_mkldnn_{precision}_supported", error)

    with pytest.raises(ValueError, match=f"EL016.*{precision}.*only for: fp32"):
        Embedder(bilm, precision=precision).embed(SENTENCES)


@pytest.mark.parametrize("operator", PRODUCTS)
def test_short_types_take_plain_products_too(monkeypatch, bilm, operator):
    try:
        require_precision("bf16", "cpu")
    except ValueError:
        pytest.skip("no bfloat16 here")
    expected = Embedder(bilm, precision="bf16").embed(SENTENCES)
    break_operator(monkeypatch, operator, RuntimeError("no"))

    assert_close(Embedder(bilm, precision="bf16").embed(SENTENCES), expected, 2e-2)


def test_only_what_is_asked_for_is_probed(monkeypatch, bilm):
    def refuse(*args):
        pytest.fail("probed")

    monkeypatch.setattr(packed_linear, "_probe_device", refuse)

    Embedder(bilm).embed(SENTENCES)


@pytest.mark.parametrize("how", ["off", "not built"])
def test_vectors_are_the_same_without_onednn(monkeypatch, bilm, how):
    expected = Embedder(bilm).embed(SENTENCES)
    embedder = Embedder(bilm)
    if how == "not built":
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
        for operator in OPERATORS:
            break_operator(monkeypatch, operator, ERRORS["gone"])
        found = embedder.embed(SENTENCES)
    else:
        with warnings.catch_warnings():
            # Of a flag that is for GPUs of another make.
            warnings.filterwarnings("ignore", ".*TF32.*")
            with torch.backends.mkldnn.flags(enabled=False):
                assert not is_packed()
                found = embedder.embed(SENTENCES)
                with pytest.raises(ValueError, match="EL016.*only for: fp32"):
                    Embedder(bilm, precision="int8").embed(SENTENCES)

    assert_close(found, expected, 1e-5)


def test_a_product_that_disagrees_is_not_used(monkeypatch):
    monkeypatch.setattr(packed_linear, "_multiply_packed", lambda X, packed, bias: X * 0.0)
    X, W = torch.randn(3, 4), torch.randn(4, 4)

    assert_close([PackedLinear(W)(X)], [X @ W], 1e-6)


CODE = """
import sys
import numpy, torch
from spacy_elmo.inference import packed_layers as packed_linear
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.bilm.model import BiLM
packed_linear._LEAST_PACKED = 0
torch.manual_seed(0)
sizes = dict(width=32, cell_width=32, projection=True, char_width=4)
bilm = BiLM(BiLMConfig(**sizes, filters=[[1, 8], [3, 8]]))
exact = None
for precision in packed_linear.PRECISIONS:
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


@pytest.mark.parametrize(
    "environment",
    [
        {"ONEDNN_MAX_CPU_ISA": "SSE41"},
        {"ONEDNN_MAX_CPU_ISA": "AVX2"},
        {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"},
        {"ATEN_CPU_CAPABILITY": "default"},
        {"OMP_NUM_THREADS": "1"},
    ],
    ids=str,
)
@pytest.mark.slow
def test_vectors_are_the_same_on_older_processors(tmp_path, environment):
    arrays = []
    for i, changes in enumerate(({}, environment)):
        path = tmp_path / f"{i}.npy"
        variables = {**os.environ, **changes}
        subprocess.run([sys.executable, "-c", CODE, path], env=variables, check=True, timeout=280)
        arrays.append(np.load(path))

    np.testing.assert_allclose(arrays[1], arrays[0], atol=1e-5)
