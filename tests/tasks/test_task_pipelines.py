"""All components and architectures: what the acceptance set does not test."""

import copy

import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.util import fix_random_seed

from spacy_elmo.tasks.shared.torch_layer import SizedModule

from ..acceptance.toys import assert_same, describe
from ..support.helpers import SHAPE, make_nlp, silently
from ..support.toy_tasks import (
    ENCODED,
    HASHED,
    LISTENER,
    MODELS,
    make_examples,
    make_gold,
    make_task,
    train,
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


@pytest.fixture(scope="module", params=MODELS)
def task(request):
    """Name of a component, and a pipeline with it."""
    return request.param, make_task(request.param)


def run(nlp, name, **settings):
    docs = [eg.predicted for eg in make_examples(nlp, make_gold(nlp, name, 9, seed=1))]
    return list(nlp.pipe(docs, **settings))


def assert_same_annotation(docs, expected):
    """As `assert_same`, without the tensors."""
    for doc, other in zip(docs, expected, strict=True):
        assert describe(doc)[1] == describe(other)[1]
        assert doc.cats == pytest.approx(other.cats, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_toy_tasks_are_learned(name):
    nlp = make_task(name, n_updates=200)
    scores = nlp.evaluate(make_examples(nlp, make_gold(nlp, name)))

    assert scores[KEYS[name]] > 0.9


def test_components_trained_separately_share_one_elmo(tmp_path):
    names = ["elmo_srl", "elmo_coref", "textcat"]
    apart = {name: make_task(name) for name in names}
    joined = make_task("ner")
    for name, nlp in apart.items():
        joined.add_pipe(name, source=nlp)
    joined.to_disk(tmp_path)
    loaded = spacy.load(tmp_path)

    assert loaded.pipe_names == ["elmo", "ner", *names]
    for name, nlp in apart.items():
        with loaded.select_pipes(enable=["elmo", name]):
            assert_same(run(loaded, name), run(nlp, name))


def test_a_doc_bin_keeps_the_predictions(task):
    name, nlp = task
    docs = run(nlp, name)
    kept = DocBin(docs=docs, store_user_data=True).to_bytes()

    loaded = DocBin(store_user_data=True).from_bytes(kept).get_docs(nlp.vocab)
    assert_same_annotation(list(loaded), docs)


def test_the_bilm_may_move_into_the_component(task):
    name, nlp = task
    expected = run(nlp, name)
    nlp = copy.deepcopy(nlp)
    path = "model.tok2vec.input" if name in ("ner", "spancat") else "model.tok2vec"
    silently(nlp.replace_listeners, "elmo", name, [path])
    nlp.remove_pipe("elmo")

    assert_same_annotation(run(nlp, name), expected)


@pytest.mark.parametrize("name", OURS)
def test_any_tok2vec_can_be_used(name):
    for settings in ({"with_elmo": False}, {"tok2vec": ENCODED}):
        nlp = make_task(name, n_updates=2, **settings)
        loaded = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes())
        assert_same(run(loaded, name), run(nlp, name))


@pytest.mark.parametrize("name", OURS)
def test_the_model_reads_docs_alone_as_spacy_debug_model_gives_them(name):
    nlp = make_task(name, n_updates=1)
    docs = [eg.predicted for eg in make_examples(nlp, make_gold(nlp, name, 3))]
    nlp.get_pipe(name).model.predict([nlp.get_pipe("elmo")(doc) for doc in docs])


@pytest.mark.parametrize("name", OURS[:4])
def test_a_component_that_was_never_trained_is_an_error(name):
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe(name, config={"model": {**MODELS[name], "tok2vec": HASHED}})
    pipe.predict([Doc(nlp.vocab)])
    (doc,) = make_gold(nlp, name, 1)
    with pytest.raises(ValueError, match="EL190"):
        pipe.predict([doc])


@pytest.mark.parametrize(
    "name, model, settings, code",
    [
        ("elmo_coref", {"width": 5}, {}, "EL012.*width = 5.*even number"),
        ("elmo_entailment", {"dropout": 1}, {}, "EL012.*dropout = 1.* .*probability"),
        ("elmo_srl", {"max_tokens": 1}, {}, "EL012.*max_tokens = 1"),
        ("textcat", {"maxout_pieces": 0}, {}, "EL012.*maxout_pieces = 0"),
        ("elmo_coref", {}, {"prefix": ""}, "EL012.*prefix"),
        ("elmo_coref", {}, {"mention_weight": -1}, "EL012.*mention_weight = -1"),
        ("elmo_qa", {}, {"window": 10, "stride": 5, "max_answer": 7}, "EL012.*stride = 5.*1 to 4"),
        ("elmo_qa", {}, {"threshold": 1.5}, "EL012.*threshold = 1.5"),
    ],
)
def test_impossible_settings_are_refused(name, model, settings, code):
    model = {**MODELS[name], "tok2vec": HASHED, **model}
    with pytest.raises(ValueError, match=code):
        spacy.blank("en").add_pipe(name, config={"model": model, **settings})


# ELMo before the encoder that a task has, after it, or both (Peters et al. 2018, table 3).
WORDS_WIDTH, ELMO_WIDTH = HASHED["width"], SHAPE["width"] * (SHAPE["depth"] + 1)
PLACES = [
    ({}, (WORDS_WIDTH, 0)),
    ({"input": LISTENER}, (WORDS_WIDTH + ELMO_WIDTH, 0)),
    ({"output": LISTENER}, (WORDS_WIDTH, ELMO_WIDTH)),
    ({"input": LISTENER, "output": LISTENER}, (WORDS_WIDTH + ELMO_WIDTH, ELMO_WIDTH)),
]


@pytest.mark.parametrize("name", ["elmo_entailment", "elmo_qa", "elmo_srl"])
@pytest.mark.parametrize("places, widths", PLACES)
def test_output_skips_the_encoder(name, places, widths, tmp_path):
    fix_random_seed(0)
    nlp = make_nlp()
    tok2vec = {"@architectures": "spacy-elmo.ElmoTok2Vec.v2", "embed": HASHED, **places}
    nlp.add_pipe(name, config={"model": {**MODELS[name], "tok2vec": tok2vec}})
    assert train(nlp, make_gold(nlp, name), 2)[name] > 0

    models = (shim._model for node in nlp.get_pipe(name).model.walk() for shim in node.shims)
    (body,) = (module.body for module in models if isinstance(module, SizedModule))
    if name == "elmo_srl":
        assert (body.project.in_features, body.skip_width) == widths
    else:
        n_more = body.match.embedding_dim
        n_read = body.encode.lstm.layers[0].input_size - n_more
        assert (n_read, body.encode.skip_width) == widths
    nlp.to_disk(tmp_path)
    assert_same(run(spacy.load(tmp_path), name), run(nlp, name))
