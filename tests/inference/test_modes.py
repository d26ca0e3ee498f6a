"""Vectors do not depend on what the caller switched on in torch."""

import contextlib

import numpy as np
import pytest
import spacy
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.loaders import build_random_loader_v1, load_embedder
from spacy_elmo.checkpoints.native import write_native
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.language_model.loading import collect_softmax
from spacy_elmo.language_model.softmax import make_softmax
from spacy_elmo.layers.elmo_layers import get_embedder

from ..support.helpers import SHAPE, TEXTS, assert_close, example, make_nlp

SENTENCES = [["a", "b", "c"], ["d", "e"]]
OTHERS = [["x", "y"], ["c", "b", "z"]]


@contextlib.contextmanager
def default(setting, value, before):
    setting(value)
    try:
        yield
    finally:
        setting(before)


MODES = {
    "inference": torch.inference_mode,
    "no_grad": torch.no_grad,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "float64": lambda: default(torch.set_default_dtype, torch.float64, torch.float32),
    "device": lambda: default(torch.set_default_device, "meta", None),
}
# Random weights are others in these; and on "meta" there are none.
DEFAULTS = ("float64", "device")


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def embedder(request):
    """Not loaded yet."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield Embedder(BiLM(BiLMConfig(**SHAPE)), loader=build_random_loader_v1(0), word_cache=4)
    torch.set_num_threads(before)


@pytest.fixture
def expected():
    embedder = Embedder(BiLM(BiLMConfig(**SHAPE)), loader=build_random_loader_v1(0))
    return embedder.embed(SENTENCES), embedder.embed(OTHERS)


def require(arrays, expected):
    assert {array.dtype for array in arrays} == {np.dtype("float32")}
    assert_close(arrays, expected, 1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_vectors_are_the_same_in_a_mode_and_after_it(embedder, expected, mode):
    if mode in DEFAULTS:
        embedder.ensure_ready()

    with MODES[mode]():
        require(embedder.embed(SENTENCES), expected[0])
        require(embedder.embed_stateful(OTHERS)[0], expected[1])
    require(embedder.embed(OTHERS), expected[1])
    with MODES[mode]():
        require(embedder.embed(SENTENCES), expected[0])


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in DEFAULTS])
def test_weights_that_were_loaded_in_a_mode_can_be_trained(embedder, mode):
    with MODES[mode]():
        embedder.ensure_ready()

    (_, batch), *_ = embedder.batches(SENTENCES)
    embedder(batch).sum().backward()

    assert all(weight.grad is not None for weight in embedder.bilm.parameters())


@pytest.mark.parametrize("mode", MODES)
def test_a_state_goes_through_modes(embedder, mode):
    embedder.ensure_ready()
    with MODES[mode]():
        _, state = embedder.embed_stateful(SENTENCES)
    arrays, _ = embedder.embed_stateful(OTHERS, state)

    _, wanted = embedder.embed_stateful(SENTENCES)
    require(arrays, embedder.embed_stateful(OTHERS, wanted)[0])


@pytest.mark.parametrize("mode", MODES)
def test_a_pipeline_is_the_same_in_a_mode(mode):
    wanted = [doc.tensor for doc in make_nlp().pipe(TEXTS)]

    nlp = make_nlp()
    with MODES[mode]():
        found = [doc.tensor for doc in nlp.pipe(TEXTS)]
    after = [doc.tensor for doc in nlp.pipe(TEXTS)]

    assert_close(found, wanted, 1e-6)
    assert_close(after, wanted, 1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_a_language_model_is_the_same_in_a_mode(mode):
    nlp = spacy.blank("en")
    lm = nlp.add_pipe("elmo_lm")
    wanted = nlp(TEXTS[0])
    substitutes = wanted[0]._.elmo_substitutes(3)

    if mode not in DEFAULTS:
        lm.from_bytes(lm.to_bytes())
    with MODES[mode]():
        found = nlp(TEXTS[0])
        assert found[0]._.elmo_substitutes(3) == substitutes
    for side in ("forward", "backward"):
        assert found._.elmo_lm[side].tolist() == wanted._.elmo_lm[side].tolist()


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in DEFAULTS])
def test_a_pipeline_that_was_made_in_a_mode_is_one_like_others(mode):
    wanted = make_nlp()(TEXTS[0]).tensor
    with MODES[mode]():
        nlp = make_nlp()
        inside = nlp(TEXTS[0]).tensor

    assert_close([inside, nlp(TEXTS[0]).tensor], [wanted, wanted], 1e-6)


@pytest.mark.parametrize("kind", ["full", "adaptive"])
def test_a_language_model_that_is_loaded_in_another_type_is_the_same(tmp_path, kind):
    torch.manual_seed(0)
    bilm = BiLM(BiLMConfig(**SHAPE))
    words = ["<S>", "</S>", "<UNK>", *"abcdef"]
    settings = {"cutoffs": [4]} if kind == "adaptive" else {}
    softmax = make_softmax(kind, bilm.config.direction_width, len(words), **settings)
    write_native(bilm, tmp_path / "lm", softmax=collect_softmax(softmax, kind, settings, words))

    def read():
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo_lm", config={"path": str(tmp_path / "lm")})
        doc = nlp("a b c")
        return doc._.elmo_lm["forward"].tolist(), doc[0]._.elmo_substitutes(2)

    wanted = read()
    with MODES["float64"]():
        assert read() == wanted


def test_modes_stay_as_they_were(embedder):
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        embedder.embed(SENTENCES)

        assert torch.is_inference_mode_enabled() and torch.is_autocast_enabled("cpu")
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_products_are_packed_whatever_the_default_device_is(precision):
    torch.manual_seed(0)
    bilm = BiLM(BiLMConfig(**SHAPE))
    try:
        expected = Embedder(bilm, precision=precision).embed(SENTENCES)
    except ValueError:
        pytest.skip(f"no {precision} here")
    with MODES["device"]():
        found = Embedder(bilm, precision=precision).embed(SENTENCES)
    # To the bit: by the same kernels.
    assert_close(found, expected, 0)


def test_what_is_loaded_in_inference_mode_can_be_trained(tmp_path):
    torch.manual_seed(0)
    write_native(BiLM(BiLMConfig(**SHAPE)), tmp_path / "weights")
    with torch.inference_mode():
        embedder = load_embedder(tmp_path / "weights")
    ((_, batch),) = embedder.batches(SENTENCES)

    embedder(batch).sum().backward()

    assert all(weight.grad is not None for weight in embedder.bilm.parameters())


def test_what_is_initialized_in_inference_mode_can_be_trained():
    nlp = make_nlp(frozen=False)
    elmo = nlp.get_pipe("elmo")
    with torch.inference_mode():
        elmo.initialize(lambda: [example(nlp)], loader=build_random_loader_v1(1))
    ((_, batch),) = get_embedder(elmo.model).batches(SENTENCES)

    get_embedder(elmo.model)(batch).sum().backward()
