"""What version 0.1.0 saved, by the make.py in folders of tests/data, loads and says the same."""

import numpy as np
import pytest
import spacy
import srsly
from spacy.tokens import DocBin

from ..data.pipeline_0_1_0.make import TEXTS, read_docs
from ..support.helpers import DATA

PIPELINE = DATA / "pipeline_0_1_0"


def load_from_bytes():
    config = spacy.util.load_config(PIPELINE / "pipeline" / "config.cfg")
    nlp = spacy.util.load_model_from_config(config)
    return nlp.from_bytes((PIPELINE / "pipeline.bytes").read_bytes())


LOADERS = {"folder": lambda: spacy.load(PIPELINE / "pipeline"), "bytes": load_from_bytes}


def assert_as_expected(arrays):
    expected = np.load(PIPELINE / "expected.npz")
    assert set(arrays) <= set(expected)
    for key, array in arrays.items():
        np.testing.assert_allclose(array, expected[key], atol=1e-5, rtol=0, err_msg=key)


@pytest.mark.parametrize("load", LOADERS.values(), ids=LOADERS)
def test_pipelines_say_the_same(load):
    arrays, rest = read_docs(load().pipe(TEXTS))

    assert rest == srsly.read_json(PIPELINE / "expected.json")
    assert_as_expected(arrays)


@pytest.mark.parametrize("load", LOADERS.values(), ids=LOADERS)
def test_pipelines_say_the_same_once_saved_again(load, tmp_path):
    load().to_disk(tmp_path / "again")

    arrays, rest = read_docs(spacy.load(tmp_path / "again").pipe(TEXTS))

    assert rest == srsly.read_json(PIPELINE / "expected.json")
    assert_as_expected(arrays)


def test_docs_say_the_same():
    docs = list(DocBin().from_disk(PIPELINE / "docs.spacy").get_docs(spacy.blank("xx").vocab))

    # They have no tensors: those are not stored.
    arrays, _ = read_docs(docs)
    assert_as_expected({key: array for key, array in arrays.items() if "tensor" not in key})
    for i, doc in enumerate(docs):
        for token, row in zip(doc, arrays[f"{i}.mix"]):
            np.testing.assert_array_equal(token._.elmo, row)


def test_the_fixture_is_what_its_script_describes():
    arrays = np.load(PIPELINE / "expected.npz")
    kinds = {"tensor", "mix", "layers", "forward", "backward", "hidden", "surprisal"}
    assert {key.split(".")[1] for key in arrays} == kinds
    tokens = [t for doc in srsly.read_json(PIPELINE / "expected.json") for t in doc["tokens"]]
    # Outputs that differ from token to token: a broken component could not say them.
    assert all(len({str(t[i]) for t in tokens}) >= 3 for i in range(5))
