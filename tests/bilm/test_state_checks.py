"""What fills a module: finite numbers of the right shapes, or nothing."""

import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.weights import check_headers, get_headers, is_finite, load_weights

from ..support.helpers import SHAPE

BIAS = "char_cnn.projection.bias"


@pytest.fixture
def bilm():
    return BiLM(BiLMConfig(**SHAPE))


def state_with(bilm, name, tensor):
    return {**{key: t.clone() for key, t in bilm.state_dict().items()}, name: tensor}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_what_is_no_number_is_refused_by_name_and_place(bilm, value, dtype):
    bad = torch.tensor([0.0, 1.0, value, 2.0], dtype=dtype)
    before = {name: t.clone() for name, t in bilm.state_dict().items()}

    with pytest.raises(ValueError, match=rf"EL106.*{BIAS}.*here.* 1 of them.*\[2\]"):
        load_weights(bilm, state_with(bilm, BIAS, bad), "here")

    assert all(torch.equal(before[name], t) for name, t in bilm.state_dict().items())


def test_what_is_too_large_for_32_bits_is_refused(bilm):
    bad = torch.tensor([0.0, 1e39, -1e39, 2.0], dtype=torch.float64)
    with pytest.raises(ValueError, match=rf"EL106.*{BIAS}.* 2 of them.*32 bits.*\[1\]"):
        load_weights(bilm, state_with(bilm, BIAS, bad), "here")


def test_other_numbers_are_cast(bilm):
    value = torch.tensor([0.0, 1e38, -65504, 1e-300], dtype=torch.float64)
    load_weights(bilm, state_with(bilm, BIAS, value), "here")
    assert torch.equal(bilm.state_dict()[BIAS], value.float())


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn])
def test_other_types_are_refused(bilm, dtype):
    with pytest.raises(ValueError, match=rf"EL022.*{BIAS}.*expected floating-point"):
        load_weights(bilm, state_with(bilm, BIAS, torch.zeros(4).to(dtype)), "here")


def test_keys_of_a_word_table_are_ascending_integers():
    bilm = BiLM(BiLMConfig(**{**SHAPE, "input": "words", "n_words": 3}))
    keys = "word_table.keys"
    with pytest.raises(ValueError, match=f"EL114.*{keys}"):
        load_weights(bilm, state_with(bilm, keys, torch.tensor([1, 3, 2])), "here")
    for dtype in (torch.float32, torch.int32):
        with pytest.raises(ValueError, match=f"EL022.*{keys}.*expected integers"):
            load_weights(bilm, state_with(bilm, keys, torch.zeros(3, dtype=dtype)), "here")
    load_weights(bilm, state_with(bilm, keys, torch.tensor([-5, 3, 9])), "here")


def test_many_wrong_names_make_a_short_message():
    names = {f"n{i}\x1b": torch.zeros(1) for i in range(10_000)}
    with pytest.raises(ValueError, match=r"EL020.*and 9992 more") as caught:
        check_headers({}, get_headers(names), "here")
    assert len(str(caught.value)) < 500 and str(caught.value).isprintable()


def test_nothing_is_finite():
    assert is_finite(torch.zeros(0, 3))
