"""Every task's component, or architecture for one of spaCy's, through all that spaCy's users do
with a pipeline."""

import copy
import pickle
import random

import numpy as np
import pytest
import spacy
import srsly
from spacy.cli.train import train as spacy_train
from spacy.tokens import Doc, DocBin

from spacy_elmo.pipeline.presets import make_config
from spacy_elmo.tasks.coref.elmo_coref import ElmoCoref
from spacy_elmo.tasks.entailment.elmo_entailment import ElmoEntailment
from spacy_elmo.tasks.qa.elmo_qa import ElmoQA

from ..support.helpers import SHAPE, silently
from ..support.toy_roles import read
from ..support.toy_tasks import (
    ENCODED,
    LISTENER,
    MODELS,
    make_examples,
    make_gold,
    make_task,
    read_output,
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


def test_batches_change_nothing(task):
    name, nlp = task
    expected = run(nlp, name)

    assert_same(run(nlp, name, batch_size=1), expected)
    assert_same(run(nlp, name, batch_size=3), expected)
    docs = make_inputs(nlp, name)
    order = list(range(len(docs)))
    random.Random(0).shuffle(order)
    shuffled = list(nlp.pipe([docs[i] for i in order]))
    assert_same([shuffled[order.index(i)] for i in range(len(docs))], expected)
    assert_same([nlp(doc) for doc in make_inputs(nlp, name)], expected)


def test_processes_change_nothing(task):
    name, nlp = task
    assert_same(run(nlp, name, n_process=2, batch_size=3), run(nlp, name))


def test_copies_say_the_same(task, tmp_path):
    name, nlp = task
    expected = run(nlp, name)
    nlp.to_disk(tmp_path)
    other = spacy.blank("en")
    for pipe in nlp.pipe_names:
        other.add_pipe(pipe, source=nlp)
    copies = [
        copy.deepcopy(nlp),
        pickle.loads(pickle.dumps(nlp)),
        spacy.load(tmp_path),
        spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes()),
        other,
    ]
    for copied in copies:
        assert_same(run(copied, name), expected)
    assert_same(run(nlp, name), expected)


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


def change_cfg(pipe, content):
    """Bytes of a component with another cfg, as somebody would write them who knows how."""
    files = srsly.msgpack_loads(pipe.to_bytes(exclude=["vocab"]))
    return srsly.msgpack_dumps({"cfg": content, "model": files["model"]})


@pytest.mark.parametrize(
    "name, content, problem",
    [
        ("elmo_coref", b"\xff", "EL116.*'elmo_coref'.*cfg: it is no text"),
        ("elmo_coref", "[", "EL116.*cfg: it is no JSON"),
        ("elmo_coref", "[]", "EL116.*cfg: it holds list"),
        ("elmo_coref", '{"prefix": 3}', "EL116.*cfg: 'prefix' is 3"),
        ("elmo_coref", '{"prefix": ""}', "EL211"),
        ("elmo_coref", '{"mention_weight": -1}', "EL212.*-1"),
        ("elmo_coref", '{"mention_weight": 1e999}', "EL212.*inf"),
        ("elmo_coref", '{"mention_weight": true}', "EL116.*cfg: 'mention_weight' is True"),
        ("elmo_coref", '{"singletons": 1}', "EL116.*cfg: 'singletons' is 1"),
        ("elmo_coref", '{"other": 1}', "EL116.*cfg: 'other'"),
        ("elmo_entailment", '{"labels": "yes"}', "EL116.*cfg: 'labels' is 'yes'"),
        ("elmo_entailment", '{"labels": ["yes", 1]}', "EL116.*cfg: 'labels'"),
        ("elmo_entailment", '{"labels": ["yes", ""]}', "EL116.*not distinct"),
        ("elmo_entailment", '{"labels": ["yes", "yes"]}', "EL116.*not distinct"),
        (
            "elmo_entailment",
            '{"labels": ["yes"]}',
            "EL116.*outputs of the model: 2, for its labels: 1",
        ),
        (
            "elmo_entailment",
            '{"labels": ["a", "b", "c"]}',
            "EL116.*outputs of the model: 2, for its labels: 3",
        ),
    ],
)
def test_a_cfg_of_other_things_is_refused(name, content, problem):
    nlp = make_task(name, n_updates=1, with_elmo=False)
    pipe, expected = nlp.get_pipe(name), run(nlp, name)

    with pytest.raises(ValueError, match=problem):
        pipe.from_bytes(change_cfg(pipe, content), exclude=["vocab"])
    if name == "elmo_entailment":
        with pytest.raises(ValueError, match=problem):
            pipe.from_bytes(change_cfg(pipe, content), exclude=["vocab", "model"])
    # What is refused leaves no trace.
    assert_same(run(nlp, name), expected)


@pytest.mark.parametrize("value", [np.zeros(1, "f"), "abc", 3, [[1.0]], np.full(3, np.nan)])
@pytest.mark.parametrize("name", [name for name in OURS if name.startswith("elmo_")])
def test_params_that_are_not_possible_are_refused(name, value):
    nlp = make_task(name, n_updates=1, with_elmo=False)
    pipe, expected = nlp.get_pipe(name), run(nlp, name)
    files = srsly.msgpack_loads(pipe.to_bytes(exclude=["vocab"]))
    message = srsly.msgpack_loads(files["model"])
    last = max(i for i, params in enumerate(message["params"]) if params)
    message["params"][last]["W" if "W" in message["params"][last] else "b"] = value
    model = srsly.msgpack_dumps(message)
    data = srsly.msgpack_dumps({"cfg": files["cfg"], "model": model})

    blank = spacy.util.load_model_from_config(nlp.config).get_pipe(name)
    for each in (pipe, blank):
        with pytest.raises(ValueError, match="EL116.*(finite|shape)"):
            each.from_bytes(data, exclude=["vocab"])
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
def test_empty_docs_alone_are_fine(name):
    nlp = make_task(name)
    doc = nlp(Doc(nlp.vocab))

    assert read_output([doc])[0][0] == []
    assert nlp.update(make_examples(nlp, [Doc(nlp.vocab)])) is not None


@pytest.mark.parametrize("name", OURS)
def test_a_trained_component_trains_on(name):
    nlp = make_task(name)
    examples = make_examples(nlp, make_gold(nlp, name))
    optimizer = nlp.resume_training()
    first, *_, last = (nlp.update(examples, sgd=optimizer)[name] for _ in range(8))

    assert last < first


@pytest.mark.parametrize("name", MODELS)
def test_spacy_train_trains_it(name, tmp_path):
    config = make_config("task_mix", [name])
    config["components"][name]["model"] = MODELS[name]
    config["components"]["elmo"]["model"].update(SHAPE)
    loader = {"@misc": "spacy-elmo.RandomLoader.v1"}
    config["initialize"]["components"]["elmo"]["loader"] = loader
    config["training"].update({"max_steps": 2, "eval_frequency": 1})
    nlp = spacy.blank("en")
    DocBin(docs=make_gold(nlp, name)).to_disk(tmp_path / "x.spacy")
    paths = {"paths.train": str(tmp_path / "x.spacy"), "paths.dev": str(tmp_path / "x.spacy")}
    filled = spacy.util.load_model_from_config(config, auto_fill=True, validate=True).config
    filled["training"]["max_steps"] = 2
    (tmp_path / "config.cfg").write_text(filled.to_str())
    silently(lambda: spacy_train(tmp_path / "config.cfg", tmp_path / "out", overrides=paths))

    trained = spacy.load(tmp_path / "out" / "model-last")
    labels = {"yes", "no", "good", "bad", "FOOD", "PER", "A0", "A1", "R-A1"}
    assert {*trained.get_pipe(name).labels} <= labels
    assert len(run(trained, name)) >= 9


@pytest.mark.parametrize("name", OURS)
def test_the_model_reads_docs_alone_as_spacy_debug_model_gives_them(name):
    nlp = make_task(name, n_updates=1)
    nlp.get_pipe(name).model.predict([nlp.get_pipe("elmo")(doc) for doc in make_inputs(nlp, name)])
