"""The network against its properties; `checkpoints/test_allennlp.py` holds it against
the NumPy oracle."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.batch import encode_words, make_batch, pack, unpack_rows
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.lstm import BiLMState
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.inference.embedder import Embedder

from ..support.helpers import SHAPE, assert_close

SENTENCES = [
    ["I", "like", "green", "eggs", "and", "ham", "."],
    ["Eat"],
    [],
    ["x", "y", "z"],
    ["<S>", "</S>", "", " ", "\0", "😀", "a" * 10_000],
]


@pytest.fixture(params=[{}, {"skip_connections": False}, {"cell_clip": 0.1, "proj_clip": 0.1}])
def embedder(request):
    torch.manual_seed(0)
    return Embedder(BiLM(BiLMConfig(**{**SHAPE, "max_chars": 40_002, **request.param})))


def test_embed_has_one_array_a_sentence(embedder):
    arrays = embedder.embed(SENTENCES)

    assert [a.shape for a in arrays] == [(3, len(words), 8) for words in SENTENCES]
    assert {a.dtype for a in arrays} == {np.dtype("float32")}


def test_embed_of_nothing(embedder):
    assert embedder.embed([]) == []
    assert embedder.embed([[]])[0].shape == (3, 0, 8)


def test_embed_doubles_the_word_layer(embedder):
    words = embedder.embed(SENTENCES)[0][0]

    assert (words[:, :4] == words[:, 4:]).all()


def test_embed_does_not_depend_on_batch_mates(embedder):
    together = embedder.embed(SENTENCES)

    assert_close([embedder.embed([words])[0] for words in SENTENCES], together)


def test_embed_does_not_depend_on_order(embedder):
    assert_close(embedder.embed(SENTENCES[::-1])[::-1], embedder.embed(SENTENCES))


@pytest.mark.parametrize("batch_tokens", [1, 9, 10, 1000])
def test_embed_does_not_depend_on_the_budget(embedder, batch_tokens):
    other = Embedder(embedder.bilm, batch_tokens=batch_tokens)

    assert_close(other.embed(SENTENCES), embedder.embed(SENTENCES))


@pytest.mark.parametrize("word_cache", [0, 1, 5, 1000])
def test_embed_does_not_depend_on_the_cache(embedder, word_cache):
    expected = Embedder(embedder.bilm, word_cache=0).embed(SENTENCES)
    other = Embedder(embedder.bilm, word_cache=word_cache)

    for _ in range(3):
        assert_close(other.embed(SENTENCES), expected)
        other.embed([["other", "words", "entirely"]])
    assert len(other.word_cache) <= word_cache


def test_embed_does_not_depend_on_earlier_calls(embedder):
    first = embedder.embed(SENTENCES)
    embedder.embed_stateful([["something", "else"]], None)

    assert_close(embedder.embed(SENTENCES), first)


NO_SENTENCES = {
    "a string": ("abc", "EL013.*Sentence 0"),
    "a string as sentence": ([["a"], "I like eggs"], "EL013.*Sentence 1.*I like"),
    "a number": (5, "EL119.*int .5., expected a list"),
    "nothing": (None, "EL119.*NoneType"),
    "an iterator": (iter([["a"]]), "EL119.*iterator"),
    "nothing as sentence": ([["a"], None], "EL119.*Sentence 1 is NoneType"),
    "a set as sentence": ([{"a"}], "EL119.*Sentence 0 is set"),
    "bytes as sentence": ([b"ab"], "EL119.*Word 0 of sentence 0 is int .97."),
    "bytes as word": ([["a"], ["a", b"b"]], "EL119.*Word 1 of sentence 1 is bytes .b'b'."),
    "an array without a length": (np.array("abc"), "EL119.*ndarray .array..abc"),
    "one as sentence": ([np.array("abc")], "EL119.*Sentence 0 is ndarray"),
    "nothing as word": ([[None]], "EL119.*Word 0 of sentence 0 is NoneType"),
}


@pytest.mark.parametrize("sentences, match", NO_SENTENCES.values(), ids=NO_SENTENCES)
@pytest.mark.parametrize("function", ["embed", "embed_stateful"])
def test_embed_refuses_what_are_no_words(embedder, function, sentences, match):
    with pytest.raises(ValueError, match=match):
        getattr(embedder, function)(sentences)


def test_embed_takes_any_lists(embedder):
    (expected,) = embedder.embed([["a", "b"]])

    for sentences in ((("a", "b"),), np.array([["a", "b"]]), [np.array(["a", "b"])]):
        assert_close(embedder.embed(sentences), [expected], 0)


@pytest.mark.parametrize("state", ["x", 5, (1, 2), [], np.zeros(3), (torch.zeros(2),) * 2])
def test_embed_stateful_refuses_what_is_no_state(embedder, state):
    with pytest.raises(ValueError, match=f"EL120.*{type(state).__name__}"):
        embedder.embed_stateful([["a"]], state)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_embed_stateful_refuses_states_of_other_numbers(embedder, dtype):
    _, state = embedder.embed_stateful([["a"]])

    with pytest.raises(ValueError, match="EL120.*BiLMState"):
        embedder.embed_stateful([["a"]], BiLMState(*(part.to(dtype) for part in state)))


@pytest.mark.parametrize("part", BiLMState._fields)
@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_embed_stateful_refuses_states_that_are_no_numbers(embedder, part, value):
    _, state = embedder.embed_stateful([["a"], ["b"]])
    getattr(state, part)[1, 0, 1, 0] = value

    with pytest.raises(ValueError, match=rf"EL306.*{part} .*: 1 of them.* \[1, 0, 1, 0\]"):
        embedder.embed_stateful([["a"]], state)


def test_embed_stateful_takes_states_of_other_types(embedder):
    _, state = embedder.embed_stateful([["a"]])
    expected, _ = embedder.embed_stateful([["b"]], state)

    arrays, after = embedder.embed_stateful([["b"]], BiLMState(*(p.double() for p in state)))

    assert_close(arrays, expected, 0)
    assert {part.dtype for part in after} == {torch.float32}


def test_embedder_refuses_impossible_numbers():
    bilm = BiLM(BiLMConfig(**SHAPE))
    with pytest.raises(ValueError, match=r"EL012.*batch_tokens = 0"):
        Embedder(bilm, batch_tokens=0)
    with pytest.raises(ValueError, match=r"EL012.*word_cache = -1"):
        Embedder(bilm, word_cache=-1)


def test_embed_warns_once_of_truncated_words():
    embedder = Embedder(BiLM(BiLMConfig(**SHAPE)))
    words = ["a" * 12, "b" * 13, "b" * 13, "c" * 10_000]

    with pytest.warns(UserWarning, match="WL003.*12 bytes.*longer: 2 so far") as record:
        cut = embedder.embed([words])[0]
        embedder.embed([words])
    assert len(record) == 1
    assert_close([cut[0, 3]], [embedder.embed([["c" * 12]])[0][0, 0]])


def test_embed_stateful_equals_embed_at_first(embedder):
    arrays, _ = embedder.embed_stateful(SENTENCES)

    assert_close(arrays, embedder.embed(SENTENCES))


def test_embed_stateful_carries_each_row_alone(embedder):
    first, second = SENTENCES, SENTENCES[::-1]
    _, state = embedder.embed_stateful(first)
    together, _ = embedder.embed_stateful(second, state)

    for row in range(len(first)):
        _, own = embedder.embed_stateful([first[row]])
        alone, _ = embedder.embed_stateful([second[row]], own)
        assert_close(alone, [together[row]])


def test_embed_stateful_keeps_rows_that_have_no_sentence(embedder):
    _, state = embedder.embed_stateful(SENTENCES)
    _, after = embedder.embed_stateful([["a"], []], state)

    assert not torch.equal(after.cell[:, :, 0], state.cell[:, :, 0])
    assert torch.equal(after.cell[:, :, 1:], state.cell[:, :, 1:])


def test_embed_stateful_starts_new_rows_at_zero(embedder):
    _, state = embedder.embed_stateful([["a", "b"]])
    arrays, _ = embedder.embed_stateful([["c"], ["d", "e"]], state)

    assert_close([arrays[1]], embedder.embed([["d", "e"]]))


def test_embed_stateful_does_not_change_its_argument(embedder):
    _, state = embedder.embed_stateful(SENTENCES)
    before = [part.clone() for part in state]
    embedder.embed_stateful(SENTENCES, state)

    assert all(torch.equal(a, b) for a, b in zip(before, state))


def test_embed_stateful_refuses_another_shape(embedder):
    other = Embedder(BiLM(BiLMConfig(**{**SHAPE, "depth": 1})))
    _, state = other.embed_stateful([["a"]])

    with pytest.raises(ValueError, match="EL014"):
        embedder.embed_stateful([["a"]], state)


def test_forward_in_two_pieces_equals_one_in_the_forward_direction():
    """Without boundaries in between, a carried state is what it would have been."""
    bilm = BiLM(BiLMConfig(**SHAPE))
    X = torch.randn(9, 4)
    stack = bilm.forward_lstm
    zero = [(torch.zeros(1, 4), torch.zeros(1, 6))] * 2
    whole, last = stack(X, [1] * 9, zero)
    first, state = stack(X[:5], [1] * 5, zero)
    second, last_of_two = stack(X[5:], [1] * 4, state)

    assert_close([torch.cat(p).detach() for p in zip(first, second)], [w.detach() for w in whole])
    assert_close([c.detach() for _, c in last_of_two], [c.detach() for _, c in last])


def test_forward_gives_every_weight_a_gradient():
    embedder = Embedder(BiLM(BiLMConfig(**SHAPE)))
    batch = make_batch([["abc", "d"], ["e"]])

    embedder(batch).pow(2).sum().backward()

    for name, weight in embedder.bilm.named_parameters():
        assert weight.grad is not None and weight.grad.abs().sum() > 0, name


def test_forward_gradients_equal_finite_differences():
    torch.manual_seed(1)
    bilm = BiLM(BiLMConfig(**{**SHAPE, "activation": "tanh", "proj_clip": 0.3})).double()
    batch = make_batch([["abc", "d", "e"], ["ef"]])
    ids = torch.from_numpy(encode_words(batch.words, 14)[0])
    word_ids = torch.from_numpy(batch.word_ids)
    names = [name for name, _ in bilm.named_parameters()]

    def run(*weights):
        weights = dict(zip(names, weights))
        return torch.func.functional_call(bilm, weights, (ids, word_ids, batch.lengths))[0]

    weights = tuple(w.detach().clone().requires_grad_() for w in bilm.parameters())
    assert torch.autograd.gradcheck(run, weights, atol=1e-6, fast_mode=True)


def test_training_switches_the_cache_off():
    embedder = Embedder(BiLM(BiLMConfig(**SHAPE)))
    embedder.embed([["a", "b"]])
    assert len(embedder.word_cache) == 4

    embedder(make_batch([["a", "b"]]))
    with torch.no_grad():
        embedder.bilm.char_cnn.projection.weight.mul_(2)
    changed = embedder.embed([["a", "b"]])

    assert len(embedder.word_cache) == 0
    assert_close(changed, Embedder(embedder.bilm).embed([["a", "b"]]))


@given(st.lists(st.integers(2, 7), min_size=1, max_size=6), st.booleans())
def test_pack_visits_each_position_once_and_in_time(lengths, read_last):
    lengths = np.array(lengths)
    packing = pack(lengths, read_last=read_last)

    starts = np.cumsum(lengths) - lengths
    steps = lengths - (0 if read_last else 1)
    assert sum(packing.batch_sizes) == steps.sum() == len(packing.forward)
    for packed, first, step in (
        (packing.forward, starts, 1),
        (packing.backward, starts + lengths - 1, -1),
    ):
        for start, n in zip(first, steps):
            positions = start + step * np.arange(n)
            rows = unpack_rows(packed, positions)
            assert (np.diff(rows) > 0).all()
            assert (packed[rows] == positions).all()


BAD_SHAPES = [
    ("width", 7),
    ("width", 0),
    ("depth", 0),
    ("cell_width", 0),
    ("char_width", 0),
    ("filters", []),
    ("filters", [[0, 3]]),
    ("filters", [[1]]),
    ("n_highway", -1),
    ("max_chars", 2),
    ("cell_clip", 0.0),
    ("proj_clip", -1.0),
    ("activation", "gelu"),
    ("projection", False),
    ("n_words", 1),
    ("vector_width", 1),
]


@pytest.mark.parametrize("key, value", BAD_SHAPES)
def test_config_refuses_impossible_values(key, value):
    expected = "cell_width" if key == "projection" else key
    with pytest.raises(ValueError, match=f"EL010.*{expected} = "):
        BiLMConfig(**{**SHAPE, key: value})


def test_config_refuses_inputs_that_do_not_exist():
    with pytest.raises(ValueError, match='EL011.*input = "subwords"'):
        BiLMConfig(input="subwords")


def test_config_survives_json():
    config = BiLMConfig(**SHAPE)

    assert BiLMConfig(**config.to_dict()) == config
    assert config.differences(BiLMConfig(**{**SHAPE, "depth": 3})) == ["depth: 2, 3"]
