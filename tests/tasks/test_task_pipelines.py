"""Every task's component, or architecture for one of spaCy's, through all that spaCy's users do
with a pipeline."""

import copy

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_elmo.tasks.coref.elmo_coref import ElmoCoref
from spacy_elmo.tasks.entailment.elmo_entailment import ElmoEntailment
from spacy_elmo.tasks.qa.elmo_qa import ElmoQA

from ..support.helpers import silently
from ..support.toy_roles import read
from ..support.toy_tasks import (
    ENCODED,
    LISTENER,
    MODELS,
    make_examples,
    make_gold,
    make_task,
)

OURS = ["elmo_coref", "elmo_entailment", "elmo_qa", "elmo_srl", "textcat", "textcat_multilabel"]
KEYS = {
    "elmo_coref": "coref_f",
    "elmo_entailment": "entailment_acc",
    "elmo_qa": "qa_em",
    "elmo_srl": "srl_f",
    "textcat": "cats_score",
    "textcat_multilabel": "cats_score",
    "ner": "ents_f",
    "spancat": "spans_sc_f",
}


@pytest.fixture(autouse=True, scope="module")
def attributes():
    """Those of all tasks, whichever component is there."""
    for pipe in (ElmoCoref, ElmoEntailment, ElmoQA):
        pipe.register_extensions()


@pytest.fixture(scope="module", params=MODELS)
def task(request):
    """Name of a component, and a pipeline with it."""
    return request.param, make_task(request.param, n_updates=10)


def make_inputs(nlp, name):
    """Fresh docs, one of them empty. spaCy's `textcat` gives an empty doc zeros if the whole batch
    is empty, and asks the model otherwise."""
    examples = make_examples(nlp, make_gold(nlp, name, 9, seed=1))
    empty = [] if name.startswith("textcat") else [Doc(nlp.vocab)]
    return [*(eg.predicted for eg in examples), *empty]


def run(nlp, name, **settings):
    return list(nlp.pipe(make_inputs(nlp, name), **settings))


def assert_same(docs, expected):
    assert len(docs) == len(expected) > 0
    for doc, other in zip(docs, expected):
        assert [str(e) + e.label_ for e in doc.ents] == [str(e) + e.label_ for e in other.ents]
        spans = [[(s.start, s.end, s.label_) for s in d.spans.get("sc", [])] for d in (doc, other)]
        assert sorted(spans[0]) == sorted(spans[1])
        assert list(doc.cats) == list(other.cats)
        np.testing.assert_allclose([*doc.cats.values()], [*other.cats.values()], atol=1e-5, rtol=0)
        assert doc._.entailment == other._.entailment
        chains = [[[(m.start, m.end) for m in c] for c in d._.coref_chains] for d in (doc, other)]
        assert chains[0] == chains[1]
        assert read(doc) == read(other)
        assert_same_answers(doc._.qa_answers, other._.qa_answers)


def assert_same_answers(answers, others):
    assert (answers is None) == (others is None)
    for answer, other in zip(answers or [], others or []):
        assert answer[1:4] == other[1:4]
        np.testing.assert_allclose(answer[4:], other[4:], atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", MODELS)
def test_toy_tasks_are_learned(name):
    nlp = make_task(name, n_updates=100)
    scores = nlp.evaluate(make_examples(nlp, make_gold(nlp, name)))

    assert scores[KEYS[name]] > 0.9


def test_what_was_trained_apart_shares_one_elmo(tmp_path):
    names = ["elmo_srl", "elmo_coref", "textcat"]
    apart = {name: make_task(name, n_updates=10) for name in names}
    joined = make_task("ner")
    for name, nlp in apart.items():
        joined.add_pipe(name, source=nlp)
    joined.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)

    assert loaded.pipe_names == ["elmo", "ner", *names]
    for name, nlp in apart.items():
        for other in set(loaded.pipe_names) - {"elmo", name}:
            loaded.disable_pipe(other)
        assert_same(run(loaded, name), run(nlp, name))
        for other in loaded.disabled:
            loaded.enable_pipe(other)


def test_docs_keep_what_was_said(task):
    name, nlp = task
    docs = run(nlp, name)
    kept = DocBin(docs=docs, store_user_data=True).to_bytes()

    assert_same(list(DocBin(store_user_data=True).from_bytes(kept).get_docs(nlp.vocab)), docs)


def test_the_bilm_may_move_into_the_component(task):
    name, nlp = task
    expected = run(nlp, name)
    nlp = copy.deepcopy(nlp)
    path = "model.tok2vec.input" if name in ("ner", "spancat") else "model.tok2vec"
    silently(nlp.replace_listeners, "elmo", name, [path])
    nlp.remove_pipe("elmo")

    assert_same(run(nlp, name), expected)


@pytest.mark.parametrize("name", [*OURS, "ner"])
def test_initializing_anew_starts_from_scratch(name):
    """As for one fold after the other."""
    nlp = make_task(name, n_updates=2)
    modules = [shim for node in nlp.get_pipe(name).model.walk() for shim in node.shims]
    before = [p.detach().clone() for shim in modules for p in shim._model.parameters()]
    nlp.initialize(lambda: make_examples(nlp, make_gold(nlp, name)))

    after = [p for shim in modules for p in shim._model.parameters()]
    assert len(before) == len(after) > 0
    matrices = [(a, b) for a, b in zip(before, after) if a.ndim > 1]
    assert matrices and not any((a == b).any() for a, b in matrices)


@pytest.mark.parametrize("name", OURS)
def test_any_tok2vec_does(name):
    nlp = make_task(name, n_updates=20, with_elmo=False)
    scores = nlp.evaluate(make_examples(nlp, make_gold(nlp, name)))
    assert scores[KEYS[name]] > 0.9

    nlp = make_task(name, tok2vec=ENCODED)
    loaded = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
    assert_same(run(loaded, name), run(nlp, name))


@pytest.mark.parametrize("name", OURS)
def test_the_mix_learns(name):
    """The gradient comes through to what listens."""
    pipe = make_task(name, tok2vec={**LISTENER, "output": "mix"}).get_pipe(name)
    mixes = [node for node in pipe.model.walk() if node.name == "scalar_mix"]
    assert len(mixes) == 1
    assert np.ptp(mixes[0].get_param("W")) > 1e-3


@pytest.mark.parametrize("name", OURS)
def test_the_model_reads_docs_alone_as_spacy_debug_model_gives_them(name):
    nlp = make_task(name, n_updates=1)
    nlp.get_pipe(name).model.predict([nlp.get_pipe("elmo")(doc) for doc in make_inputs(nlp, name)])
