import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.bilm.word_table import WordTable
from spacy_elmo.inference.embedder import Embedder

from ..support.helpers import SHAPE


def make_config(n_words, input="words"):
    return BiLMConfig(
        **SHAPE, input=input, n_words=n_words, vector_width=3 if input == "vectors" else 0
    )


@given(st.lists(st.text(), unique=True, max_size=20))
def test_every_word_is_found_and_no_other(words):
    words = [w for w in words if w not in ("<S>", "</S>")]
    table = WordTable(make_config(len(words), "vectors"))
    vectors = torch.arange(3.0 * len(words)).reshape(-1, 3)
    table.fill(words, vectors)

    rows = table.find([*words, "never seen \x00", "<S>", "</S>"])

    torch.testing.assert_close(table.vectors[rows[: len(words)] - 3], vectors)
    assert rows[len(words) :].tolist() == [2, 0, 1]


@pytest.mark.parametrize("input", ["words", "vectors"])
def test_tables_make_layers_and_survive_as_weights(input):
    torch.manual_seed(0)
    bilm = BiLM(make_config(2, input))
    bilm.word_table.fill(["ham", "eggs"])
    embedder = Embedder(bilm)

    known, unknown, other = embedder.embed([["ham"], ["spam"], ["bacon"]])

    assert abs(known - unknown).max() > 1e-3
    np.testing.assert_allclose(unknown, other, atol=1e-6)
    again = BiLM(bilm.config)
    again.load_state_dict(bilm.state_dict())
    np.testing.assert_allclose(Embedder(again).embed([["ham"]])[0], known, atol=1e-6)


@pytest.mark.parametrize("input", ["words", "vectors"])
def test_given_vectors_stay_and_others_learn(input):
    bilm = BiLM(make_config(2, input))
    bilm.word_table.fill(["ham", "eggs"])

    X = bilm.encode(bilm.word_table.find(["ham", "spam", "<S>"]))
    X.sum().backward()

    trained = {name for name, _ in bilm.word_table.named_parameters()}
    assert ("vectors" in trained) == (input == "words")
    assert bilm.word_table.special.grad.abs().sum() > 0


def test_an_empty_table_knows_the_boundaries():
    bilm = BiLM(make_config(0))

    assert Embedder(bilm).embed([["ham"]])[0].shape == (3, 1, 8)
