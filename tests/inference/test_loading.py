"""Weights that are loaded while others compute: a call has the old ones or the new ones."""

import copy
import threading
import time

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.loaders import build_random_loader_v1
from spacy_elmo.checkpoints.native import write_native
from spacy_elmo.inference import embedder as embedder_module
from spacy_elmo.inference.activation_cache import build_activation_cache_v1
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.inference.engine import InferenceEngine
from spacy_elmo.layers.elmo_layers import get_embedder

from ..support.helpers import SHAPE, assert_close, make_nlp

INPUTS = {
    "characters": {},
    "words": {"input": "words", "n_words": 30},
    "vectors": {"input": "vectors", "n_words": 30, "vector_width": 5},
}
WORDS = [f"w{i}" for i in range(30)]
# Several batches of several sentences.
SENTENCES = [WORDS[i : i + 7] for i in range(0, 23)]


def make_bilm(seed, input="characters"):
    torch.manual_seed(seed)
    bilm = BiLM(BiLMConfig(**SHAPE, **INPUTS[input]))
    if input != "characters":
        bilm.word_table.fill(WORDS)
    return bilm


def start(function, *args):
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("input", INPUTS)
def test_a_call_has_the_old_weights_or_the_new_ones(input):
    states = [make_bilm(seed, input).state_dict() for seed in (0, 1)]
    bilm = make_bilm(0, input)
    expected = [Embedder(make_bilm(seed, input)).embed(SENTENCES) for seed in (0, 1)]
    embedder = Embedder(bilm, batch_tokens=40, n_threads=1)
    is_over, found = threading.Event(), []

    def predict():
        while not is_over.is_set():
            found.append(embedder.embed(SENTENCES))

    threads = [start(predict) for _ in range(3)]
    for turn in range(24):
        bilm.load_state_dict(states[turn % 2])
        # As `Elmo.load` does it, in two steps.
        if turn % 3:
            embedder.set_ready()
        assert_close(embedder.embed(SENTENCES), expected[turn % 2], 1e-5)
    is_over.set()
    for thread in threads:
        thread.join(60)

    assert len(found) > 10
    for arrays in found:
        whole = np.concatenate([array.ravel() for array in arrays])
        assert (
            min(
                abs(whole - np.concatenate([array.ravel() for array in wanted])).max()
                for wanted in expected
            )
            < 1e-5
        )


def test_what_was_built_of_old_weights_is_not_kept(monkeypatch):
    is_built, may_go_on = threading.Event(), threading.Event()

    class Slow(InferenceEngine):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            is_built.set()
            may_go_on.wait(30)

    monkeypatch.setattr(embedder_module, "InferenceEngine", Slow)
    embedder, other = Embedder(make_bilm(0)), make_bilm(1)

    def load():
        embedder.bilm.load_state_dict(other.state_dict())
        embedder.set_ready()

    first = start(embedder.embed, SENTENCES)
    assert is_built.wait(30)
    loading = start(load)
    loading.join(0.3)
    may_go_on.set()
    first.join(30)
    loading.join(30)

    assert_close(embedder.embed(SENTENCES), Embedder(other).embed(SENTENCES), 1e-6)


def test_a_loader_that_waits_does_not_replace_what_was_loaded_meanwhile():
    embedder, other = Embedder(make_bilm(0), loader=build_random_loader_v1(5)), make_bilm(1)
    expected = Embedder(other).embed(SENTENCES)

    embedder.bilm.load_state_dict(other.state_dict())
    # Another thread, before `load` comes to its end.
    assert_close(embedder.embed(SENTENCES), expected, 1e-6)
    embedder.set_ready()

    assert_close(embedder.embed(SENTENCES), expected, 1e-6)


def test_a_loader_that_waits_stays_while_the_bilm_is_moved():
    """As Thinc moves it to a GPU."""
    embedder = Embedder(make_bilm(0), loader=build_random_loader_v1(5))

    embedder.half().float()

    loaded = make_bilm(0)
    build_random_loader_v1(5)(loaded)
    assert_close(embedder.embed(SENTENCES), Embedder(loaded).embed(SENTENCES), 1e-6)


def test_a_loader_runs_once_for_all_threads():
    calls = []

    def loader(bilm):
        calls.append(bilm)
        time.sleep(0.05)
        bilm.load_state_dict(make_bilm(1).state_dict())

    embedder = Embedder(make_bilm(0), loader=loader)
    found = []
    threads = [start(lambda: found.append(embedder.embed(SENTENCES))) for _ in range(6)]
    for thread in threads:
        thread.join(60)

    assert len(calls) == 1
    for arrays in found:
        assert_close(arrays, Embedder(make_bilm(1)).embed(SENTENCES), 1e-6)


def test_a_loader_that_fails_is_tried_again():
    def loader(bilm):
        if not calls:
            calls.append(1)
            raise ValueError("no such file")
        bilm.load_state_dict(make_bilm(1).state_dict())

    calls = []
    embedder = Embedder(make_bilm(0), loader=loader)

    with pytest.raises(ValueError, match="no such file"):
        embedder.embed(SENTENCES)
    assert_close(embedder.embed(SENTENCES), Embedder(make_bilm(1)).embed(SENTENCES), 1e-6)


def test_a_state_dict_is_of_one_moment():
    states = [make_bilm(seed).state_dict() for seed in (0, 1)]
    bilm, is_over, found = make_bilm(0), threading.Event(), []

    def look():
        while not is_over.is_set():
            held = bilm.state_dict()
            found.append([all(torch.equal(held[k], s[k]) for k in held) for s in states])

    thread = start(look)
    for turn in range(200):
        bilm.load_state_dict(states[turn % 2])
    is_over.set()
    thread.join(60)

    assert found and all(sum(which) == 1 for which in found)


@pytest.mark.parametrize("strict", [True, False])
def test_weights_that_do_not_fit_change_nothing(strict):
    bilm = make_bilm(0)
    before = copy.deepcopy(bilm.state_dict())
    state = {**make_bilm(1).state_dict(), "forward_lstm.layers.0.bias": torch.zeros(1)}

    with pytest.raises(RuntimeError, match="forward_lstm.layers.0.bias"):
        bilm.load_state_dict(state, strict=strict)

    assert all(torch.equal(tensor, before[name]) for name, tensor in bilm.state_dict().items())


def test_optimizers_keep_their_parameters_and_gradients_flow():
    bilm, other = make_bilm(0), make_bilm(1)
    parameters = list(bilm.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.1)

    bilm.load_state_dict(other.state_dict())
    embedder = Embedder(bilm)
    embedder(next(iter(embedder.batches(SENTENCES)))[1]).sum().backward()
    optimizer.step()

    assert all(a is b for a, b in zip(parameters, bilm.parameters()))
    assert not torch.equal(bilm.char_cnn.projection.bias, other.char_cnn.projection.bias)


def test_weights_are_copied_from_where_they_come():
    bilm, other = make_bilm(0), make_bilm(1)
    state = other.state_dict()
    expected = Embedder(copy.deepcopy(other)).embed(SENTENCES)

    bilm.load_state_dict(state)
    for tensor in state.values():
        tensor.zero_()

    assert_close(Embedder(bilm).embed(SENTENCES), expected, 1e-6)


def test_moving_to_another_type_is_seen():
    embedder = Embedder(make_bilm(0))
    embedder.embed(SENTENCES)

    embedder.half().float()

    expected = Embedder(make_bilm(0).half().float()).embed(SENTENCES)
    assert_close(embedder.embed(SENTENCES), expected, 1e-6)


def test_a_component_loads_while_others_predict(tmp_path):
    nlp, texts = make_nlp(), ["I like green eggs", "and ham"]
    folders = [tmp_path / "a", tmp_path / "b"]
    expected = []
    for seed, folder in enumerate(folders):
        write_native(get_embedder(make_nlp(seed=seed).get_pipe("elmo").model).bilm, folder)
        nlp.get_pipe("elmo").load(folder)
        expected.append([doc.tensor.copy() for doc in nlp.pipe(texts)])
    is_over, errors = threading.Event(), []

    def predict():
        while not is_over.is_set():
            found = [doc.tensor for doc in nlp.pipe(texts)]
            if not any(
                all(np.allclose(a, b, atol=1e-6) for a, b in zip(found, wanted))
                for wanted in ([x[0], y[1]] for x in expected for y in expected)
            ):
                errors.append(found)

    threads = [start(predict) for _ in range(2)]
    for turn in range(20):
        nlp.get_pipe("elmo").load(folders[turn % 2])
        assert_close([doc.tensor for doc in nlp.pipe(texts)], expected[turn % 2], 1e-6)
    is_over.set()
    for thread in threads:
        thread.join(60)
    assert not errors


def load_around(embedder, state):
    """As a user's own module does that has an embedder in it."""
    torch.nn.ModuleDict({"elmo": embedder}).load_state_dict(
        {f"elmo.bilm.{name}": tensor for name, tensor in state.items()}
    )


def replace_bilm(embedder, state):
    bilm = make_bilm(2)
    bilm.load_state_dict(state)
    embedder.bilm = bilm


def change_in_place(embedder, state):
    with torch.no_grad():
        for name, weight in embedder.bilm.named_parameters():
            weight.copy_(state[name])


WAYS = {
    "by torch, from around": load_around,
    "assigned": lambda embedder, state: embedder.bilm.load_state_dict(state, assign=True),
    "another biLM": replace_bilm,
    "in place": change_in_place,
}


@pytest.mark.parametrize("way", WAYS)
def test_weights_are_noticed_however_they_come(way):
    embedder, other = Embedder(make_bilm(0)), make_bilm(1)
    embedder.use_activations(build_activation_cache_v1())
    before, kept = embedder.embed(SENTENCES), embedder.activations()
    expected = Embedder(make_bilm(1)).embed(SENTENCES)

    WAYS[way](embedder, other.state_dict())

    assert_close(embedder.embed(SENTENCES), expected)
    assert np.abs(before[0] - expected[0]).max() > 0.01
    assert embedder.activations() is not kept


def test_a_loader_leaves_weights_that_came_before_it(tmp_path):
    embedder = Embedder(make_bilm(0), loader=build_random_loader_v1(2))
    load_around(embedder, make_bilm(1).state_dict())

    assert_close(embedder.embed(SENTENCES), Embedder(make_bilm(1)).embed(SENTENCES))


def test_what_is_saved_was_loaded():
    embedder = Embedder(make_bilm(0), loader=build_random_loader_v1(2))
    expected = make_bilm(0)
    build_random_loader_v1(2)(expected)

    state = torch.nn.ModuleDict({"elmo": embedder}).state_dict()

    for name, tensor in expected.state_dict().items():
        torch.testing.assert_close(state[f"elmo.bilm.{name}"], tensor)


def test_weights_in_bfloat16_have_a_hash():
    embedder = Embedder(make_bilm(0).bfloat16())
    assert embedder.hash_weights() != Embedder(make_bilm(0)).hash_weights()
