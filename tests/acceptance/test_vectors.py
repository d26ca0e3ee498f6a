"""The numbers: released weights give the vectors that they gave, checked against files, against
a plain NumPy description of the network, and against finite differences."""

import h5py
import numpy as np
import pytest
import spacy
import srsly
import torch
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.training import Example

from spacy_elmo import load_embedder

from ..support import golden, oracle
from ..support.helpers import DATA, ROOT
from ..support.toy import make_options, make_weights, write_model
from .toys import RANDOM, SHAPE

SENTENCES = golden.SENTENCES
SHAPES = {
    "usual": {},
    "one layer": {"n_layers": 1},
    "three layers without skip": {"n_layers": 3, "use_skip_connections": False},
    "tanh, no clip": {"activation": "tanh", "cell_clip": None, "proj_clip": None},
    "no highway": {"n_highway": None},
}


def require_equal(found, expected):
    """To 5e-5 of the largest number of each layer: at one place of these sentences the first LSTM
    multiplies rounding by 50 to 100."""
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=5e-5 * abs(b).max())


@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_bundled_model_gives_the_numbers_of_numpy(n_threads):
    arrays = np.load(golden.FIXTURE)
    embedder = load_embedder()
    embedder.n_threads = n_threads

    for i, array in enumerate(embedder.embed(SENTENCES)):
        require_equal(array, arrays[f"zero_{i}"])


def test_the_component_gives_the_numbers_of_numpy():
    arrays = np.load(golden.FIXTURE)
    nlp = spacy.blank("en")
    elmo = nlp.add_pipe("elmo", config={"store_layers": True})

    for i, doc in enumerate(elmo.pipe([Doc(nlp.vocab, words=words) for words in SENTENCES])):
        require_equal(doc._.elmo["elmo"]["layers"].transpose(1, 0, 2), arrays[f"zero_{i}"])


def test_the_medium_model_gives_the_numbers_that_it_gave():
    arrays = np.load(DATA / "en_medium_golden.npz")
    folder = ROOT / "models" / "en_medium" / "spacy_elmo_en_medium" / "model"

    for i, array in enumerate(load_embedder(folder).embed(SENTENCES)):
        require_equal(array, arrays[f"zero_{i}"])


@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES)
def test_weights_of_any_shape_give_the_numbers_of_numpy(tmp_path, changes):
    options = make_options(**changes)
    weights = make_weights(options)
    embedder = load_embedder(*write_model(tmp_path, options, weights))

    state, states = None, [None] * len(SENTENCES)
    for words, array in zip(SENTENCES, embedder.embed(SENTENCES)):
        np.testing.assert_allclose(array, oracle.embed(options, weights, words)[0], atol=1e-5)
    for _ in range(2):
        arrays, state = embedder.embed_stateful(SENTENCES, state)
        for i, words in enumerate(SENTENCES):
            expected, states[i] = oracle.embed(options, weights, words, states[i])
            np.testing.assert_allclose(arrays[i], expected, atol=1e-5)


def test_published_weights_give_the_published_numbers(shared):
    folder = shared / "data" / "elmo" / "fixtures" / "allennlp"
    streams = srsly.read_json(folder / "sentences.json")
    embedder = load_embedder(folder / "options.json", folder / "lm_weights.hdf5")
    with h5py.File(folder / "lm_embeddings_0.hdf5") as file_:
        expected = [file_[str(i)][...] for i in range(10)]

    state = None
    for i in range(10):
        batch = [stream[i].split() for stream in streams]
        arrays, state = embedder.embed_stateful(batch, state)
        found = np.stack(np.split(arrays[0][-1], 2, axis=-1))
        np.testing.assert_allclose(found, expected[i], atol=1e-6)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    options = make_options()
    return load_embedder(
        *write_model(tmp_path_factory.mktemp("tiny"), options, make_weights(options))
    )


WORDS = st.lists(st.sampled_from(["a", "ham", "naïve", "😀", "", "x" * 10]), max_size=12)


@given(st.lists(WORDS, max_size=7))
def test_a_sentence_alone_and_in_any_batch_is_the_same(tiny, sentences):
    together = tiny.embed(sentences)

    assert [array.shape for array in together] == [(3, len(words), 8) for words in sentences]
    for words, array in zip(sentences, together):
        np.testing.assert_allclose(tiny.embed([words])[0], array, atol=1e-6)


def test_gradients_are_those_of_finite_differences(tiny):
    """Of a sum over all layers, for a few numbers of each parameter, in double precision."""
    ((_, batch),) = tiny.batches([["a", "ham", "naïve"], ["ham"], ["😀"] * 5])
    generator = np.random.default_rng(0)
    bilm = tiny.bilm

    def loss():
        layers = tiny(batch)
        weights = torch.linspace(-1, 1, layers.numel(), dtype=layers.dtype)
        return (layers.flatten() * weights).sum()

    try:
        bilm.double().train().requires_grad_(True)
        bilm.zero_grad()
        loss().backward()
        for name, parameter in bilm.named_parameters():
            flat, gradient = parameter.data.view(-1), parameter.grad.view(-1)
            for i in generator.choice(len(flat), size=min(3, len(flat)), replace=False):
                value, step = flat[i].item(), 1e-6
                flat[i] = value + step
                above = loss().item()
                flat[i] = value - step
                below = loss().item()
                flat[i] = value
                found = (above - below) / (2 * step)
                assert gradient[i].item() == pytest.approx(found, rel=1e-4, abs=1e-7), name
    finally:
        bilm.float().eval()


def test_the_mix_is_learned_with_the_gradient_of_finite_differences():
    """What a listening tagger sends back moves mix weights and γ in the direction of its loss."""
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-elmo.Elmo.v2", **SHAPE, "frozen": False}
    elmo = nlp.add_pipe("elmo", config={"model": model})
    nlp.config["initialize"]["components"]["elmo"] = {"loader": RANDOM}
    doc = Doc(nlp.vocab, words=["Sam", "eats", "ham"])
    nlp.initialize(lambda: [Example(doc.copy(), doc)])
    mix = next(node for node in elmo.model.walk() if node.has_param("gamma"))
    wanted = np.linspace(-1, 1, 3 * SHAPE["width"], dtype="f").reshape(3, -1)

    (_,), backprop = elmo.model.begin_update([doc])
    backprop([wanted])
    gradient = {name: mix.get_grad(name).copy() for name in mix.param_names}
    for name in mix.param_names:
        values = mix.get_param(name)
        for i in range(values.size):
            results = []
            for step in (1e-2, -1e-2):
                changed = values.copy()
                changed.flat[i] += step
                mix.set_param(name, changed)
                results.append(float((elmo.model.predict([doc])[0] * wanted).sum()))
            mix.set_param(name, values)
            found = (results[0] - results[1]) / 2e-2
            assert gradient[name].flat[i] == pytest.approx(found, rel=2e-2, abs=1e-4)
