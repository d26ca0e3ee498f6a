"""Every component and every preset, in its default, minimal config, through all that spaCy's
users do with a pipeline: copied, pickled, filled, saved, sent to other processes."""

import copy
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import spacy

from spacy_elmo.layers.elmo_layers import get_embedder
from spacy_elmo.pipeline.presets import PRESETS

from ..support.helpers import ROOT
from ..support.pipelines import TEXTS, assert_same, build, make_components, make_pipeline, read


def is_quick(name):
    return name in ("elmo", "elmo_lm", "elmo_senses", "word_features")


PIPELINES = [
    pytest.param(name, marks=[] if is_quick(name) else pytest.mark.slow)
    for name in ("elmo", "elmo_lm", "elmo_senses", *PRESETS)
]


@pytest.fixture(scope="module", params=PIPELINES)
def nlp(request, tmp_path_factory):
    return make_pipeline(request.param, tmp_path_factory.mktemp("pipeline"))


def from_config(nlp):
    return build(nlp.config.copy()).from_bytes(nlp.to_bytes())


def from_full_config(nlp):
    return spacy.blank("en").from_config(nlp.config, auto_fill=False).from_bytes(nlp.to_bytes())


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda nlp: pickle.loads(pickle.dumps(nlp)),
    "config": from_config,
    "full config": from_full_config,
}


@pytest.mark.parametrize("make_copy", COPIES.values(), ids=COPIES)
def test_copies_say_the_same(nlp, make_copy):
    expected = list(nlp.pipe(TEXTS))

    assert_same(make_copy(nlp).pipe(TEXTS), expected)
    # And the one that was copied still does.
    assert_same(nlp.pipe(TEXTS), expected)


def test_saved_pipelines_say_the_same(nlp, tmp_path):
    nlp.to_disk(tmp_path)

    assert_same(spacy.load(tmp_path).pipe(TEXTS), nlp.pipe(TEXTS))


def test_sourced_components_say_the_same(nlp):
    other = spacy.blank("en")
    # spaCy sources components, not vectors: who takes one that reads them has them already.
    other.vocab.vectors = copy.deepcopy(nlp.vocab.vectors)
    for name in nlp.pipe_names:
        other.add_pipe(name, source=nlp)

    assert_same(other.pipe(TEXTS), nlp.pipe(TEXTS))


def test_copies_are_apart(nlp):
    """What is trained on in a copy does not change the original."""
    copied = copy.deepcopy(nlp)
    models = [pipe.model for name, pipe in nlp.pipeline if name == "elmo"]
    for model, other in zip(models, [copied.get_pipe("elmo").model for _ in models]):
        weight = next(get_embedder(other).bilm.parameters())
        assert weight.data_ptr() != next(get_embedder(model).bilm.parameters()).data_ptr()
    assert copied.vocab is not nlp.vocab
    assert all(pipe.vocab is copied.vocab for _, pipe in copied.pipeline if hasattr(pipe, "vocab"))


def test_defaults_are_safe_from_what_is_done_to_a_config():
    first = make_components("elmo").config["components"]["elmo"]["model"]
    with pytest.raises(AttributeError):
        first["filters"].append([6, 1])
    first["filters"] = []

    assert len(make_components("elmo").config["components"]["elmo"]["model"]["filters"]) == 6


SPAWN = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
import spacy
from tests.support.pipelines import TEXTS, assert_same

def make(source):
    if Path(source).exists():
        return spacy.load(source)
    nlp = spacy.blank("en")
    for name in source.split(","):
        nlp.add_pipe(name)
    return nlp

def apply(nlp, texts):
    return [doc.to_bytes() for doc in nlp.pipe(texts)]

if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    nlp = make(sys.argv[1])
    # Fresh: weights are loaded by whoever needs them first.
    docs = list(nlp.pipe(TEXTS, n_process=2, batch_size=1))
    expected = list(nlp.pipe(TEXTS))
    assert_same(docs, expected)
    with ProcessPoolExecutor(1) as pool:
        data = pool.submit(apply, nlp, TEXTS).result()
    assert_same([spacy.tokens.Doc(nlp.vocab).from_bytes(each) for each in data], expected)
    print("done")
"""


def run_spawned(tmp_path, source):
    """A child that cannot read what it is sent dies, and spaCy waits for it for ever."""
    (tmp_path / "spawn.py").write_text(SPAWN)
    command = [sys.executable, "-W", "error::UserWarning", tmp_path / "spawn.py", str(source)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=250, env=environment, check=False
    )
    assert result.stdout == "done\n", result.stderr


def test_fresh_components_go_to_spawned_processes(tmp_path):
    run_spawned(tmp_path, "elmo,elmo_lm")


def test_many_threads_say_what_one_says(nlp):
    expected = read(nlp.pipe(TEXTS))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: read(nlp.pipe(TEXTS, batch_size=1)), range(16)))

    for arrays, rest in found:
        assert rest == expected[1]
        for array, other in zip(arrays, expected[0]):
            np.testing.assert_allclose(array, other, atol=1e-5, rtol=0)


@pytest.mark.slow
def test_pipelines_go_to_spawned_processes(nlp, tmp_path):
    nlp.to_disk(tmp_path / "pipeline")
    run_spawned(tmp_path, tmp_path / "pipeline")
