"""One contract for every component and preset: trained by `spacy train`, each can be saved, copied
and sent to other processes, and gives the same whatever it is computed beside."""

import copy
import gc
import os
import pickle
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import spacy
import torch
from spacy.training import Example
from thinc.api import Model

from .toys import PRESETS, TASKS, TEXTS, assert_same, make_gold, make_inputs, make_pipeline

NAMES = ("elmo", "elmo_lm", "elmo_senses", *PRESETS, *TASKS)


@pytest.fixture(scope="module", params=NAMES)
def made(request, tmp_path_factory):
    """Name and folder of a saved pipeline."""
    name = request.param
    return name, make_pipeline(tmp_path_factory.mktemp(name), name)


@pytest.fixture
def name(made):
    return made[0]


@pytest.fixture(scope="module")
def nlp(made):
    return spacy.load(made[1])


def predict(nlp, name, **options):
    return list(nlp.pipe(make_inputs(nlp, name), **options))


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda nlp: pickle.loads(pickle.dumps(nlp)),
    "bytes": lambda nlp: spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes()),
}


@pytest.mark.parametrize("make_copy", COPIES.values(), ids=COPIES)
def test_copies_predict_the_same(nlp, name, make_copy):
    expected = predict(nlp, name)

    copied = make_copy(nlp)

    assert_same(predict(copied, name), expected)
    assert_same(predict(nlp, name), expected)
    assert copied.vocab is not nlp.vocab
    assert all(pipe.vocab is copied.vocab for _, pipe in copied.pipeline if hasattr(pipe, "vocab"))


def test_a_saved_pipeline_predicts_the_same(nlp, name, tmp_path):
    nlp.to_disk(tmp_path / "again")

    assert_same(predict(spacy.load(tmp_path / "again"), name), predict(nlp, name))


def test_sourced_components_predict_the_same(nlp, name):
    other = spacy.blank("en")
    # spaCy sources components, not the static vectors that they read.
    other.vocab.vectors = copy.deepcopy(nlp.vocab.vectors)
    for pipe in nlp.pipe_names:
        other.add_pipe(pipe, source=nlp)

    assert_same(predict(other, name), predict(nlp, name))


def test_a_doc_alone_and_in_any_batch_is_the_same(nlp, name):
    expected = predict(nlp, name)

    assert_same([nlp(doc) for doc in make_inputs(nlp, name)], expected)
    assert_same(predict(nlp, name, batch_size=2), expected)
    turned = list(nlp.pipe(make_inputs(nlp, name)[::-1]))
    assert_same(turned[::-1], expected)


def test_threads_predict_the_same(nlp, name):
    expected = predict(nlp, name)

    with ThreadPoolExecutor(4) as pool:
        for docs in pool.map(lambda _: predict(nlp, name, batch_size=1), range(6)):
            assert_same(docs, expected)


def test_empty_docs_pass(nlp):
    docs = list(nlp.pipe(["", "Sam eats .", "", ""]))

    assert [len(doc) for doc in docs] == [0, 3, 0, 0]
    if "elmo" in nlp.pipe_names:
        assert docs[0].tensor.shape == (0, docs[1].tensor.shape[1])


def test_vectors_are_those_of_the_tensor(nlp, name):
    if "elmo" not in nlp.pipe_names:
        pytest.skip("no vectors")
    doc = nlp(TEXTS[0])

    assert np.isfinite(doc.tensor).all() and doc.tensor.any()
    np.testing.assert_allclose(doc[1]._.elmo, doc.tensor[1])
    np.testing.assert_allclose(doc[1:3]._.elmo, doc.tensor[1:3].mean(0), atol=1e-6)


FIXED = ("elmo", "elmo_lm", "elmo_senses", "sentencizer")


def make_examples(nlp, name):
    gold = make_gold(nlp.vocab, name, seed=5, n_docs=8)
    examples = []
    for doc in gold:
        predicted = spacy.tokens.Doc(nlp.vocab, words=[t.text for t in doc])
        for group in ("premise", "hypothesis", "question", "context"):
            if group in doc.spans:
                spans = doc.spans[group]
                predicted.spans[group] = [predicted[s.start : s.end] for s in spans]
        examples.append(Example(predicted, doc))
    return examples


def test_learning_lowers_the_loss(nlp, name):
    trainable = [pipe for pipe in nlp.pipe_names if pipe not in FIXED]
    if not trainable:
        pytest.skip("nothing learns")
    nlp = copy.deepcopy(nlp)
    examples = make_examples(nlp, name)
    optimizer = nlp.resume_training()
    optimizer.learn_rate = 0.01
    losses = []
    for _ in range(12):
        found = nlp.update(examples, sgd=optimizer, drop=0.0, annotates=["sentencizer"])
        losses.append(sum(found[pipe] for pipe in trainable))

    assert min(losses[-3:]) < losses[0]


@pytest.mark.filterwarnings("ignore:.*no-op:UserWarning")
@pytest.mark.parametrize("default", ["bfloat16", "float64", "meta"])
def test_torchs_defaults_change_nothing(made, nlp, name, default, tmp_path):
    """Another library of the program may have set them."""
    expected = predict(nlp, name)
    try:
        if default == "meta":
            torch.set_default_device(default)
        else:
            torch.set_default_dtype(getattr(torch, default))
        loaded = spacy.load(made[1])
        assert_same(predict(loaded, name), expected)
        loaded.to_disk(tmp_path / "again")
        if set(nlp.pipe_names) - set(FIXED):
            examples = make_examples(loaded, name)
            loaded.update(examples, sgd=loaded.resume_training(), annotates=["sentencizer"])
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)

    for path in made[1].rglob("model"):
        if path.is_file():
            again = tmp_path / "again" / path.relative_to(made[1])
            assert again.read_bytes() == path.read_bytes()


def test_a_deleted_pipeline_frees_its_weights(made, name):
    """At once: Python's garbage collector runs late where few objects are large."""
    gc.collect()
    gc.disable()
    try:
        nlp = spacy.load(made[1])
        predict(nlp, name)
        models = [pipe.model for _, pipe in nlp.pipeline if hasattr(pipe, "model")]
        nodes = [node for model in models if isinstance(model, Model) for node in model.walk()]
        modules = [weakref.ref(shim._model) for node in nodes for shim in node.shims]
        del nlp, models, nodes
        assert not any(module() for module in modules)
    finally:
        gc.enable()


SPAWN = """
import multiprocessing, sys
import spacy
from tests.acceptance.toys import assert_same, make_inputs

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    nlp = spacy.load(sys.argv[3])
    docs = list(nlp.pipe(make_inputs(nlp, sys.argv[2]), n_process=2, batch_size=1))
    assert_same(docs, nlp.pipe(make_inputs(nlp, sys.argv[2])))
    print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.parametrize("name", ["elmo_lm", "elmo_senses", "static_vectors", "elmo_srl"])
def test_processes_predict_the_same(name, method, tmp_path):
    (tmp_path / "script.py").write_text(SPAWN)
    folder = make_pipeline(tmp_path / "made", name)
    command = [sys.executable, tmp_path / "script.py", method, name, folder]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, env=environment)

    assert done.stdout == "done\n", done.stderr
