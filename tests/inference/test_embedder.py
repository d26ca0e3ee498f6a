"""`Embedder`: sentences to layers, with and without state; when its weights are loaded, and when
they change."""

import copy
import pickle
import threading
import time

import numpy as np
import pytest
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.lstm import BiLMState
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.loaders import build_random_loader_v1
from spacy_elmo.inference.activation_cache import build_activation_cache_v1
from spacy_elmo.inference.embedder import Embedder

from ..support.helpers import SHAPE, assert_close

SENTENCES = [
    ["I", "like", "green", "eggs", "and", "ham", "."],
    ["Eat"],
    [],
    ["x", "y", "z"],
    ["<S>", "</S>", "", " ", "\0", "😀", "a" * 10_000],
]
CHANGES = {
    "usual": {},
    "no skip": {"skip_connections": False},
    "clips": {"cell_clip": 0.1, "proj_clip": 0.1},
}


def make_bilm(seed=0, **changes):
    torch.manual_seed(seed)
    return BiLM(BiLMConfig(**{**SHAPE, **changes}))


@pytest.fixture(params=CHANGES.values(), ids=CHANGES)
def embedder(request):
    return Embedder(make_bilm(max_chars=40_002, **request.param))


# ---- without state


@pytest.mark.parametrize("settings", [
    {"batch_tokens": 1}, {"batch_tokens": 9}, {"word_cache": 0}, {"word_cache": 1},
    {"word_cache": 5}, {"n_threads": 1}, {"n_threads": 3},
], ids=str)  # fmt: skip
def test_embed_does_not_depend_on_settings_order_or_earlier_calls(embedder, settings):
    expected = embedder.embed(SENTENCES)
    other = Embedder(embedder.bilm, **settings)

    for _ in range(2):
        assert_close(other.embed(SENTENCES), expected)
        other.embed([["other", "words", "entirely"]])
        other.embed_stateful([["something", "else"]])
        assert_close(other.embed(SENTENCES[::-1])[::-1], expected)
    assert len(other.word_cache) <= settings.get("word_cache", 1000)


@pytest.mark.parametrize("n_sentences", [1, 5])
def test_embed_layer_is_one_of_all(embedder, n_sentences):
    sentences = SENTENCES[:n_sentences]
    arrays = embedder.embed(sentences)

    for layer in range(-3, 3):
        for found, layers in zip(embedder.embed_layer(sentences, layer), arrays, strict=True):
            assert_close([found], [layers[layer]])
    for layer in (3, -4):
        with pytest.raises(ValueError, match="EL012.*layer"):
            embedder.embed_layer(sentences, layer)


def test_compute_gives_the_layers_of_sequences_one_after_the_other(embedder):
    sentences = [SENTENCES[0], [], *SENTENCES[3:]]
    expected = [array.swapaxes(0, 1) for array in embedder.embed(sentences)]
    embedder.batch_tokens = 12

    found = {}
    for members, layers in embedder.compute(sentences):
        parts = layers.clone().split([len(sentences[i]) for i in members])
        found.update(zip(members, parts, strict=True))

    assert sorted(found) == [i for i, words in enumerate(sentences) if words]
    assert_close([found[i] for i in sorted(found)], [expected[i] for i in sorted(found)])


NO_SENTENCES = {
    "a string": ("abc", "EL013.*The argument is str .'abc'.*list of lists"),
    "an iterator": (iter([["a"]]), "EL013.*iterator"),
    "an array without a length": (np.array("abc"), "EL013.*ndarray"),
    "a string as sentence": ([["a"], "I like eggs"], "EL013.*Sentence 1 is str .'I like"),
    "None as sentence": ([["a"], None], "EL013.*Sentence 1 is NoneType"),
    "a set as sentence": ([{"a"}], "EL013.*Sentence 0 is set"),
    "bytes as word": ([["a"], ["a", b"b"]], "EL013.*Word 1 of sentence 1 is bytes .b'b'."),
}


@pytest.mark.parametrize("sentences, match", NO_SENTENCES.values(), ids=NO_SENTENCES)
@pytest.mark.parametrize("function", ["embed", "embed_stateful"])
def test_arguments_that_are_not_lists_of_words_are_refused(function, sentences, match):
    with pytest.raises(ValueError, match=match):
        getattr(Embedder(make_bilm()), function)(sentences)


def test_embed_takes_any_sequences(embedder):
    (expected,) = embedder.embed([["a", "b"]])

    for sentences in ((("a", "b"),), np.array([["a", "b"]]), [np.array(["a", "b"])]):
        assert_close(embedder.embed(sentences), [expected], 0)


def test_impossible_settings_are_refused():
    for settings in ({"batch_tokens": 0}, {"word_cache": -1}, {"n_threads": -1}):
        with pytest.raises(ValueError, match=f"EL012.*{next(iter(settings))}"):
            Embedder(make_bilm(), **settings)
    with pytest.raises(ValueError, match="EL012.*precision = 'int4'.*fp32, bf16"):
        Embedder(make_bilm(), precision="int4")


def test_embed_warns_once_of_truncated_words():
    embedder = Embedder(make_bilm())
    words = ["a" * 12, "b" * 13, "b" * 13, "c" * 10_000]

    # A short text with two addresses, and a long one, of few distinct words, with more.
    embedder.embed([["see", "x" * 20, "y" * 20]])
    embedder.embed([[*("x" * n for n in range(20, 24)), *["a"] * 400]])
    with pytest.warns(UserWarning, match="WL003.*3 of 4 words are cut to 12 bytes") as record:
        cut = embedder.embed([words])[0]
        embedder.embed([words])
    assert len(record) == 1
    assert_close([cut[0, 3]], [embedder.embed([["c" * 12]])[0][0, 0]])


# ---- with state


def test_embed_stateful_equals_embed_at_first_and_carries_each_row_alone(embedder):
    first, second = SENTENCES, SENTENCES[::-1]
    arrays, state = embedder.embed_stateful(first)
    before = [part.clone() for part in state]
    together, _ = embedder.embed_stateful(second, state)

    assert_close(arrays, embedder.embed(first))
    # It does not change its argument.
    assert all(torch.equal(a, b) for a, b in zip(before, state))
    for row in range(len(first)):
        _, own = embedder.embed_stateful([first[row]])
        alone, _ = embedder.embed_stateful([second[row]], own)
        assert_close(alone, [together[row]])


def test_rows_without_sentence_or_state(embedder):
    _, state = embedder.embed_stateful(SENTENCES)
    _, after = embedder.embed_stateful([["a"], []], state)
    arrays, _ = embedder.embed_stateful([["c"]] * 5 + [["d", "e"]], state)

    # Rows without a sentence keep their state, rows without a state start at zero.
    assert not torch.equal(after.cell[:, :, 0], state.cell[:, :, 0])
    assert torch.equal(after.cell[:, :, 1:], state.cell[:, :, 1:])
    assert_close([arrays[5]], embedder.embed([["d", "e"]]))


def test_other_states_are_refused():
    embedder = Embedder(make_bilm())
    _, state = embedder.embed_stateful([["a"]])
    _, shallow = Embedder(make_bilm(depth=1)).embed_stateful([["a"]])
    infinite = BiLMState(state.hidden, torch.full_like(state.cell, torch.inf))
    integers = BiLMState(*(part.long() for part in state))

    for wrong, match in (
        ("x", "str"),
        ((1, 2), "tuple"),
        (integers, "BiLMState"),
        (shallow, r"of shape \(1, 2, 1, 4\)"),
        (infinite, "not finite"),
    ):
        with pytest.raises(ValueError, match=f"EL014.*{match}"):
            embedder.embed_stateful([["a"]], wrong)


# ---- weights


def test_a_loader_runs_once_for_all_threads():
    calls, found = [], []

    def loader(bilm):
        calls.append(bilm)
        time.sleep(0.05)
        bilm.load_state_dict(make_bilm(1).state_dict())

    embedder = Embedder(make_bilm(), loader=loader)
    threads = [
        threading.Thread(target=lambda: found.append(embedder.embed(SENTENCES[:2])))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert len(calls) == 1 and len(found) == 6
    expected = Embedder(make_bilm(1)).embed(SENTENCES[:2])
    for arrays in found:
        assert_close(arrays, expected, 1e-6)


def test_a_loader_that_fails_is_tried_again():
    def loader(bilm):
        if not calls:
            calls.append(1)
            raise ValueError("no such file")
        bilm.load_state_dict(make_bilm(1).state_dict())

    calls = []
    embedder = Embedder(make_bilm(), loader=loader)
    with pytest.raises(ValueError, match="no such file"):
        embedder.embed([["a"]])
    assert_close(embedder.embed([["a"]]), Embedder(make_bilm(1)).embed([["a"]]), 1e-6)


def load_around(embedder, state):
    """As a user's own module does that has an embedder in it."""
    torch.nn.ModuleDict({"elmo": embedder}).load_state_dict(
        {f"elmo.bilm.{name}": tensor for name, tensor in state.items()}
    )


def load_directly(embedder, state):
    embedder.bilm.load_state_dict(state)


def load_by_loader(embedder, state):
    embedder.load(lambda bilm: bilm.load_state_dict(state))


@pytest.mark.parametrize("load", [load_around, load_directly, load_by_loader])
@pytest.mark.parametrize("pending", [False, True])
def test_loaded_weights_replace_what_was_computed_or_would_be_loaded(load, pending):
    loader = build_random_loader_v1(5) if pending else None
    embedder, other = Embedder(make_bilm(), loader=loader), Embedder(make_bilm(1))
    if not pending:
        embedder.use_activations(build_activation_cache_v1())
        embedder.embed([["a", "b"]])
        kept = embedder.activations()

    load(embedder, other.bilm.state_dict())

    assert_close(embedder.embed([["a", "b"]]), other.embed([["a", "b"]]), 1e-6)
    if not pending:
        assert embedder.activations() is not kept


def test_weights_are_packed_once_after_an_update():
    embedder = Embedder(make_bilm())
    embedder.embed([["a"]])
    assert len(embedder.word_cache) == 3
    (_, batch), *_ = embedder.batches([["a", "b"]])
    optimizer = torch.optim.SGD(embedder.parameters(), lr=0.5)

    embedder(batch).pow(2).sum().backward()
    assert all(weight.grad.abs().sum() > 0 for weight in embedder.parameters())
    for _ in range(2):
        # It is not known when the optimizer changes them.
        optimizer.step()
        assert_close(embedder.embed([["a"]]), Embedder(embedder.bilm).embed([["a"]]), 0)
        assert len(embedder.word_cache) == 0
    embedder.weights_updated()

    assert_close(embedder.embed([["a"]]), Embedder(embedder.bilm).embed([["a"]]), 0)
    assert len(embedder.word_cache) == 3


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_weights_of_another_type_are_read_as_float32(dtype):
    words = [["a", "b"]]
    expected = Embedder(make_bilm()).embed(words)
    embedder = Embedder(make_bilm().to(dtype))

    assert_close(embedder.embed(words), expected, 1e-6 if dtype == torch.float64 else 1e-2)
    _, state = embedder.embed_stateful(words)
    assert_close(embedder.embed_stateful(words, state)[0], embedder.embed_stateful(words, state)[0])


@pytest.mark.parametrize("copier", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
@pytest.mark.parametrize("used", [False, True])
def test_an_embedder_can_be_copied_before_and_after_its_first_use(copier, used):
    embedder = Embedder(make_bilm(), loader=build_random_loader_v1(1))
    if used:
        embedder.embed(SENTENCES[:2])

    other = copier(embedder)

    assert other.is_ready
    assert_close(other.embed(SENTENCES[:2]), embedder.embed(SENTENCES[:2]), 0)


MODES = {
    "inference": torch.inference_mode,
    "no_grad": torch.no_grad,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
}


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_vectors_are_the_same_in_a_mode_of_torch_and_after_it(mode, n_threads):
    others = [["x", "y"], ["c", "b", "z"]]
    expected = Embedder(make_bilm()).embed(SENTENCES[:2]), Embedder(make_bilm()).embed(others)
    embedder = Embedder(make_bilm(), n_threads=n_threads, word_cache=4)

    with mode():
        assert_close(embedder.embed(SENTENCES[:2]), expected[0], 1e-6)
        arrays, state = embedder.embed_stateful(others)
        assert_close(arrays, expected[1], 1e-6)
    assert_close(embedder.embed(others), expected[1], 1e-6)
    embedder.embed_stateful(others, state)
    with mode():
        assert_close(embedder.embed(SENTENCES[:2]), expected[0], 1e-6)
