"""Static vectors of the pipeline as a layer, words without one among them."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.vectors import Vectors

from spacy_elmo.layers.elmo_tok2vec import pipeline_vectors
from tests.support.helpers import assert_close

WORDS = [["a", "zzz", "b", "qqq"], [], ["b"], ["zzz"]]


@pytest.fixture
def docs():
    vocab = spacy.blank("en").vocab
    data = np.random.default_rng(0).standard_normal((3, 5), dtype="float32")
    vocab.vectors = Vectors(strings=vocab.strings, data=data, keys=["a", "b", "c"])
    return [Doc(vocab, words=words) for words in WORDS]


def test_words_without_a_vector_are_zeros(docs):
    model = pipeline_vectors(2)
    model.initialize(X=docs)

    Ys, _ = model(docs, True)

    assert [Y.shape for Y in Ys] == [(len(words), 2) for words in WORDS]
    for words, Y in zip(WORDS, Ys):
        assert [bool(row.any()) for row in Y] == [word in "ab" for word in words]


def test_a_pipeline_without_vectors_is_told(docs):
    model = pipeline_vectors(2)
    model.initialize(X=docs)
    others = [Doc(spacy.blank("en").vocab, words=words) for words in WORDS]
    for is_train in (False, True):
        with pytest.raises(ValueError, match="EL332.*nlp.vocab.vectors"):
            model(others, is_train)
    assert [Y.shape for Y in model.predict(others[1:2])] == [(0, 2)]


def test_gradients_match_finite_differences(docs):
    model = pipeline_vectors(2)
    model.initialize(X=docs)
    table = model.layers[0]
    rng = np.random.default_rng(1)
    dYs = [rng.standard_normal((len(doc), 2), dtype="float32") for doc in docs]

    _, backprop = model(docs, True)
    backprop([dY.copy() for dY in dYs])

    W, expected = table.get_param("W").copy(), np.zeros((2, 5))
    for i in np.ndindex(*W.shape):
        sums = []
        for step in (0.5, -0.5):  # the layer is linear in W
            changed = W.copy()
            changed[i] += step
            table.set_param("W", changed)
            sums.append(sum((Y * dY).sum() for Y, dY in zip(model.predict(docs), dYs)))
        expected[i] = sums[0] - sums[1]
    assert_close([table.get_grad("W")], [expected], atol=1e-4)
    assert np.abs(expected).max() > 0.1
