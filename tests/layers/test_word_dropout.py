import numpy as np
import pytest
import srsly
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import Model

from spacy_elmo.layers.elmo_tok2vec import drop_words

VOCAB = Vocab()


def make_docs(*texts):
    return [Doc(VOCAB, words=text.split()) for text in texts]


def make_model(share=0.5):
    """Features are a word's length and 1; what comes back is kept."""
    returned = []

    def forward(model, docs, is_train):
        rows = [np.array([[len(t), 1] for t in doc], dtype="float32") for doc in docs]
        return [row.reshape(-1, 2) for row in rows], lambda dYs: returned.extend(dYs) or []

    return drop_words(Model("features", forward), share), returned


def is_dropped(Ys):
    return [[not row.any() for row in Y] for Y in Ys]


def test_whole_tokens_are_dropped_in_training_and_in_the_gradient():
    model, returned = make_model(0.3)
    docs = make_docs("", "green eggs " * 300, "ham " * 400)
    full = model.layers[0].predict(docs)

    Ys, backprop = model.begin_update(docs)
    assert backprop([np.ones_like(Y) for Y in Ys]) == []

    X, Y, dX = (np.concatenate(rows) for rows in (full, Ys, returned))
    dropped = (Y == 0).all(axis=1)
    assert 0.2 < dropped.mean() < 0.4
    np.testing.assert_array_equal(Y[~dropped], X[~dropped])
    assert (dX[~dropped] == 1).all() and (dX[dropped] == 0).all()
    assert [row.dtype for row in [*Ys, *returned]] == ["float32"] * 6
    assert [row.shape for row in returned] == [(0, 2), (600, 2), (400, 2)]


def test_words_never_trained_on_have_no_features():
    model, _ = make_model()
    docs = make_docs("green eggs", "ham Ham", "")
    assert is_dropped(model.predict(docs)) == [[True, True], [True, True], []]

    model.begin_update(make_docs("ham eggs"))
    assert is_dropped(model.predict(docs)) == [[True, False], [False, True], []]
    model.begin_update(make_docs("green", ""))
    assert is_dropped(model.predict(docs)) == [[False, False], [False, True], []]
    np.testing.assert_array_equal(model.predict(docs)[0], [[5, 1], [4, 1]])


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=4), max_size=4))
def test_what_was_trained_on_is_remembered_and_saved(batches):
    model, _ = make_model()
    for words in batches:
        model.begin_update(make_docs(" ".join(words)))
    loaded = make_model()[0].from_bytes(model.to_bytes())

    seen = {word for words in batches for word in words}
    expected = [[word not in seen for word in "abcdefgh"]]
    assert is_dropped(model.predict(make_docs("a b c d e f g h"))) == expected
    assert is_dropped(loaded.predict(make_docs("a b c d e f g h"))) == expected


def test_a_new_start_forgets():
    model, _ = make_model()
    model.begin_update(make_docs("ham"))
    model.initialize()

    assert is_dropped(model.predict(make_docs("ham"))) == [[True]]


def test_no_docs():
    model, _ = make_model()

    assert model.predict([]) == [] and model.begin_update([])[0] == []


def test_the_config_decides_the_share_and_not_what_was_saved():
    docs = make_docs("ham " * 100)
    model = make_model(0.0)[0].from_bytes(make_model(0.9)[0].to_bytes())

    assert is_dropped(model.begin_update(docs)[0]) == [[False] * 100]


BAD_WORDS = {
    "not sorted": np.array([2, 1], dtype="uint64"),
    "twice": np.array([1, 1], dtype="uint64"),
    "signed": np.array([1, 2]),
    "a table": np.array([[1, 2]], dtype="uint64"),
    "text": "ham",
}


@pytest.mark.parametrize("words", BAD_WORDS.values(), ids=BAD_WORDS)
def test_words_that_are_none_are_refused(words):
    model, _ = make_model()
    model.begin_update(make_docs("ham eggs"))
    message = srsly.msgpack_loads(model.to_bytes())
    message["attrs"][0]["seen"] = srsly.msgpack_dumps(words)

    with pytest.raises(ValueError, match="EL116.*word_dropout"):
        make_model()[0].from_bytes(srsly.msgpack_dumps(message))
