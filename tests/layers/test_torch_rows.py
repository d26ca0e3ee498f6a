"""Thinc's layers by torch: products, rows, an encoder with its sources, kept features."""

import pickle
import sys

import numpy as np
import pytest
import spacy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.ml.models.tok2vec import (
    BiLSTMEncoder,
    CharacterEmbed,
    MaxoutWindowEncoder,
    MishWindowEncoder,
    MultiHashEmbed,
)
from spacy.tokens import Doc
from thinc.api import (
    Adam,
    LayerNorm,
    Linear,
    Maxout,
    Model,
    Ops,
    Relu,
    chain,
    expand_window,
    residual,
)

from spacy_elmo.layers.elmo_tok2vec import encode_rows, join
from spacy_elmo.layers.torch_rows import RowsFinder, TorchOps, as_tensor, use_torch
from spacy_elmo.layers.word_features import WordFeatures, drop_words

from ..support.helpers import TEXTS

chain_forward = sys.modules["thinc.layers.chain"].forward
NLP = spacy.blank("en")


def make_docs():
    return [NLP.make_doc(text) for text in (*TEXTS, "", "Sam I am " * 50)]


def make_features(width=8):
    return MultiHashEmbed(
        width=width, attrs=["NORM", "SHAPE"], rows=[50, 20], include_static_vectors=False
    )


def assert_equal(found, expected, atol=1e-5):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=atol)


# Products


@pytest.mark.parametrize("trans1, trans2", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("out", [None, np.zeros((3, 5), dtype="float32")], ids=["new", "out"])
def test_products_are_thincs(trans1, trans2, out):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 3) if trans1 else (3, 4)).astype("float32")
    y = rng.standard_normal((5, 4) if trans2 else (4, 5)).astype("float32")
    x.flags.writeable = False

    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = TorchOps().gemm(x, y, out=out, trans1=bool(trans1), trans2=bool(trans2))

    expected = (x.T if trans1 else x) @ (y.T if trans2 else y)
    np.testing.assert_allclose(product, expected, atol=1e-6)
    assert product.dtype == "float32" and (out is None or product is out)


def test_layers_on_a_processor_get_torchs_products_and_no_others():
    model = chain(Linear(2, 3), Linear(3, 2))
    model.layers[1].ops = other = Ops()
    use_torch(model)
    ops = [layer.ops for layer in pickle.loads(pickle.dumps(model)).layers]
    assert [type(each) for each in ops] == [TorchOps, Ops] and model.layers[1].ops is other


# Rows


LAYERS = {
    "linear": lambda n, k: Linear(n, n),
    "norm": lambda n, k: LayerNorm(n),
    "maxout": lambda n, k: Maxout(n, n, nP=k, normalize=True, dropout=0.5),
    "residual": lambda n, k: residual(Maxout(n, n, nP=k)),
    "window": lambda n, k: chain(expand_window(k), Linear(n, n * (2 * k + 1))),
}


@pytest.mark.parametrize("layer", LAYERS)
@given(st.integers(4, 12), st.integers(1, 4), st.integers(1, 30))
@settings(deadline=None)
def test_functions_of_rows_are_thincs(layer, width, k, n_rows):
    model = LAYERS[layer](width, k)
    X = np.random.default_rng(n_rows).standard_normal((n_rows, width)).astype("float32")
    model.initialize(X=X, Y=X)

    found = RowsFinder().find(model)

    np.testing.assert_allclose(found(as_tensor(X)).numpy(), model.predict(X), atol=1e-4)


def test_replaced_parameters_are_found_and_changed_ones_are_views():
    model, finder = Linear(1, 1).initialize(), RowsFinder()
    one = as_tensor(np.ones((1, 1), dtype="float32"))
    finder.find(model)
    for value in (2.0, 3.0):
        model.set_param("W", np.full((1, 1), value, dtype="float32"))
        assert finder.find(model)(one).item() == value
    model.get_param("W")[:] = 4.0
    assert finder.find(model)(one).item() == 4.0
    assert pickle.loads(pickle.dumps(finder)).find(model)(one).item() == 4.0


UNKNOWN = [Relu(2, 2), chain(Linear(2, 2), Relu(2, 2)), Linear(2)]


@pytest.mark.parametrize("model", UNKNOWN, ids=["unknown", "unknown inside", "not ready"])
def test_layers_that_are_not_known_or_not_ready_have_no_function(model):
    if model.has_dim("nI"):
        model.initialize()
    assert RowsFinder().find(model) is None


# Encoders with their sources

ENCODERS = {
    "window": lambda width: MaxoutWindowEncoder(width, 1, 3, 4),
    "wide window": lambda width: MaxoutWindowEncoder(width, 2, 2, 1),
    "not known": lambda width: MishWindowEncoder(width, 1, 2),
    "torch's": lambda width: BiLSTMEncoder(width, 1, 0.0),
}
SOURCES = {
    "features": lambda: [make_features()],
    "characters": lambda: [CharacterEmbed(8, 20, 2, 3, include_static_vectors=False)],
    "both": lambda: [drop_words(make_features(4), 0.5), make_features(4)],
}


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("sources", SOURCES)
def test_prediction_is_that_of_thincs_layers(encoder, sources):
    models, docs = SOURCES[sources](), make_docs()
    encode = ENCODERS[encoder](8)
    model = encode_rows(join(*models), encode, has_features_alone=len(models) == 1)
    model.initialize(docs)
    model.begin_update(docs[:2])

    found = model.predict(docs)

    assert_equal(found, chain_forward(model, docs, False)[0])
    assert [Y.shape for Y in model.predict([Doc(NLP.vocab)])] == [(0, 8)]
    assert_equal(model.copy().predict(docs), found)
    assert_equal(pickle.loads(pickle.dumps(model)).predict(docs), found)
    # A doc alone has the same vectors, unless an encoder of spaCy's lets docs see each other.
    if "window" in encoder:
        assert_equal(model.predict(docs[:1]), found[:1])


# Features that are kept


def read(features, model, docs):
    table, ids = features.read(model, docs)
    return table.numpy()[ids.numpy()]


def make_kept(share=0.5):
    model = drop_words(make_features(), share)
    docs = [NLP.make_doc(text) for text in ("green eggs and ham", "Sam I am and ham")]
    model.initialize(docs)
    model.begin_update(docs[:1])
    return model, docs, WordFeatures()


def expect(model, docs):
    return np.concatenate(model.predict(docs))


def change_in_place(model, docs):
    """As an optimizer does, before and after whose step docs are read."""
    Ys, backprop = model.begin_update(docs)
    backprop([np.ones_like(Y) for Y in Ys])
    model.finish_update(Adam(0.1))


def learn_words(model, docs):
    model.begin_update(docs)


CHANGES = {"an update": change_in_place, "new words": learn_words}


@pytest.mark.parametrize("change", CHANGES)
def test_kept_features_follow_the_model(change):
    model, docs, features = make_kept()
    before = read(features, model, docs)
    np.testing.assert_allclose(before, expect(model, docs), atol=1e-6)
    CHANGES[change](model, docs)
    after = read(features, model, docs)
    np.testing.assert_allclose(after, expect(model, docs), atol=1e-6)
    assert np.abs(after - before).max() > 1e-3


def test_averaged_parameters_are_used_and_taken_back():
    model, docs, features = make_kept()
    optimizer = Adam(0.1, use_averages=True)
    for _ in range(3):
        Ys, backprop = model.begin_update(docs)
        backprop([np.ones_like(Y) for Y in Ys])
        model.finish_update(optimizer)
    own = read(features, model, docs)
    with model.use_params(optimizer.averages):
        averaged = read(features, model, docs)
        np.testing.assert_allclose(averaged, expect(model, docs), atol=1e-6)
    assert np.abs(averaged - own).max() > 1e-4
    np.testing.assert_array_equal(read(features, model, docs), own)


def test_features_are_computed_once_for_each_word(monkeypatch):
    model, docs, features = make_kept()
    read(features, model, docs)
    monkeypatch.setattr(Model, "predict", None)
    read(features, model, docs)
    assert pickle.loads(pickle.dumps(features))._kept is None


def test_a_norm_of_its_own_makes_another_word():
    """A tokenizer's exceptions give a token another norm than that of its lexeme."""
    model, _, features = make_kept(share=0.0)
    doc = NLP.make_doc("can't ca can")
    assert len({token.norm for token in doc if token.text == "ca"}) == 2
    np.testing.assert_allclose(read(features, model, [doc]), expect(model, [doc]), atol=1e-6)


def test_features_of_other_models_are_not_kept():
    for model in (CharacterEmbed(8, 20, 2, 3, include_static_vectors=False), Model("any", None)):
        assert WordFeatures().read(model, make_docs()) is None
