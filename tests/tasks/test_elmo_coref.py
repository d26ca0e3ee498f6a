"""The component "elmo_coref"; what all tasks' components do is in test_task_pipelines.py."""

import re

import numpy as np
import pytest
import spacy
from spacy import displacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_elmo.tasks.coref.clusters import (
    SCORES,
    make_display,
    render_chains,
    score_coref,
    set_gold_clusters,
)
from spacy_elmo.tasks.coref.spans import find_facts, mask_scores

from ..support.toy_tasks import HASHED, RANKER, make_examples, make_gold, make_task, train

WORDS = ["Sam", "and", "eggs", "like", "Sam", "and", "eggs"]


@pytest.fixture(scope="module")
def nlp():
    return make_task("elmo_coref", n_updates=30)


@pytest.fixture
def pipe(nlp):
    return nlp.get_pipe("elmo_coref")


def add(nlp, **settings):
    return nlp.add_pipe("elmo_coref", config={"model": {**RANKER, "tok2vec": HASHED}, **settings})


def make_doc(nlp, *clusters, words=WORDS):
    doc = Doc(nlp.vocab, words=words)
    set_gold_clusters(doc, clusters)
    return doc


def initialize(pipe, nlp, *docs):
    pipe.initialize(lambda: make_examples(nlp, docs))


def test_clusters_are_span_groups(nlp):
    doc = nlp(Doc(nlp.vocab, words=WORDS))

    assert [*doc.spans] == ["coref_clusters_1"]
    (chain,) = doc._.coref_chains
    assert [*doc.spans["coref_clusters_1"]] == chain == [doc[0:1], doc[4:5]]


def test_settings_may_be_overridden_where_a_pipeline_is_loaded(tmp_path):
    nlp = spacy.blank("en")
    add(nlp, mention_weight=0.5)
    train(nlp, make_gold(nlp, "elmo_coref"), 1)
    nlp.to_disk(tmp_path)
    settings = {"components": {"elmo_coref": {"singletons": True, "prefix": "chain"}}}
    pipe = spacy.load(tmp_path, config=settings).get_pipe("elmo_coref")

    assert pipe.cfg == {"singletons": True, "prefix": "chain", "mention_weight": 0.5}


def test_training_data_that_contradicts_singletons_is_a_warning():
    nlp = spacy.blank("en")
    double, single = [(0, 1), (4, 5)], [(2, 3)]
    pipe = add(nlp)
    with pytest.warns(UserWarning, match="WL037.*one mention.*: 1 of 2, .*singletons = true"):
        initialize(pipe, nlp, make_doc(nlp, double, single))
    pipe.cfg["singletons"] = True
    with pytest.warns(UserWarning, match="WL037.*singletons = false"):
        initialize(pipe, nlp, make_doc(nlp, double))


def test_training_data_with_long_mentions_is_a_warning():
    nlp = spacy.blank("en")
    pipe = add(nlp, model={**RANKER, "tok2vec": HASHED, "max_span": 1})
    with pytest.warns(UserWarning, match="WL042.*longer than `max_span = 1`: 1 of 2"):
        initialize(pipe, nlp, make_doc(nlp, [(0, 1), (4, 6)]))


@pytest.mark.parametrize("clusters", [[], [[(0, 1)]]])
def test_training_data_without_clusters_is_an_error(clusters):
    nlp = spacy.blank("en")
    pipe = add(nlp)
    with pytest.raises(ValueError, match="EL194.*'coref_clusters_1'.*convert-data ontogum"):
        initialize(pipe, nlp, make_doc(nlp, *clusters))


def test_docs_without_clusters_are_not_learned_from(nlp, pipe):
    docs = [Doc(nlp.vocab, words=WORDS), Doc(nlp.vocab), make_doc(nlp, [(0, 1), (4, 5)])]
    examples = make_examples(nlp, docs)
    for eg in examples:
        nlp.get_pipe("elmo")(eg.predicted)
    _, gradient = pipe.get_loss(examples, pipe.model.predict([eg.predicted for eg in examples]))

    assert [any(array.any() for array in own) for own in gradient] == [False, False, True]
    assert not np.isnan(gradient[2][1]).any()


def test_no_mention_begins_or_ends_with_whitespace():
    doc = Doc(spacy.blank("en").vocab, words=["Sam", " ", "eats", "\n", "\n", "ham"])
    facts = find_facts(doc, 0, 6, 4)
    kept = np.isfinite(mask_scores(np.zeros((6, 4), dtype="float32"), facts))
    spans = [doc[i : i + extra + 1] for i, extra in zip(*np.nonzero(kept))]

    assert not any(span[0].is_space or span[-1].is_space for span in spans)
    assert [len(span) for span in spans] == [1, 3, 1, 4, 1]
    blank = find_facts(Doc(doc.vocab, words=[" ", "\n"]), 0, 2, 2)
    assert np.isfinite(mask_scores(np.zeros((2, 2), dtype="float32"), blank)).sum() == 3


def test_an_empty_group_means_no_chain(nlp):
    said, unsaid = make_doc(nlp), Doc(nlp.vocab, words=WORDS)
    scores = nlp.evaluate(make_examples(nlp, [said, unsaid]))
    assert scores["coref_f"] == 0 == scores["coref_mentions_p"]
    assert set(SCORES) <= {*nlp.evaluate(make_examples(nlp, [unsaid]))}
    assert nlp.evaluate(make_examples(nlp, [unsaid]))["coref_f"] is None


def test_gold_mentions_of_other_tokens_are_a_warning(nlp, pipe):
    gold = Doc(nlp.vocab, words=["Sam", "'s", "Sam"], spaces=[False, True, False])
    set_gold_clusters(gold, [[(0, 1), (2, 3)]])
    example = Example(Doc(nlp.vocab, words=["Sam's", "Sam"]), gold)
    with pytest.warns(UserWarning, match="WL039.*CorefCorpus"):
        nlp.update([example], sgd=False)
    # In scores they are not found, and those with the same characters are.
    example.predicted.spans["coref_clusters_1"] = [example.predicted[0:1], example.predicted[1:2]]
    assert score_coref([example])["coref_mentions_r"] == 0.5


def test_chains_are_drawn_in_colours(nlp):
    words = [*WORDS, "<b>"]
    doc = make_doc(nlp, [(0, 1), (4, 5)], [(2, 3), (6, 7)], words=words)
    display = make_display(doc)
    spans = display["docs"]["spans"]

    assert [(s["start_token"], s["label"]) for s in spans[:3]] == [
        (0, "1 Sam"), (2, "2 eggs"), (4, "1 Sam"),
    ]  # fmt: skip
    assert displacy.render(**display, jupyter=False) == render_chains(doc)
    html = render_chains(doc, page=True)
    assert html.count("1 Sam") == 2 and "<b>" not in html and html.startswith("<!DOCTYPE")
    colors = display["options"]["colors"].values()
    assert len({*colors}) == 2 and all(re.fullmatch("#[0-9a-f]{6}", color) for color in colors)
    assert all(html.count(color) >= 2 for color in colors)
