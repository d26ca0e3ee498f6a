"""`spacy elmo tasks`: one pipeline with all of the tasks, from one shared elmo."""

import re
from html import escape

import pytest
import spacy
from spacy.tokens import Span
from spacy.training import Example
from thinc.api import fix_random_seed

from spacy_elmo.explore.sections import describe_answers
from spacy_elmo.tasks.qa.answers import set_gold

from ..support.helpers import make_nlp
from ..support.toy_tasks import MODELS, make_task
from .test_commands import run

TEXT = "Sam gave him ham ."
ALL = ("ner", "spancat", "textcat", "elmo_coref", "elmo_entailment", "elmo_qa", "elmo_srl")


def make_gold(nlp):
    """A text for those that read one, and pairs for the others."""
    doc = nlp.make_doc(TEXT)
    doc.set_ents([Span(doc, 0, 1, label="PER")])
    doc.spans["sc"] = [Span(doc, 3, 4, label="FOOD")]
    doc.cats = {"good": 1.0, "bad": 0.0}
    doc.spans["coref_clusters_1"] = [doc[0:1], doc[2:3]]
    roles = {"ARG0": (0, 1), "V": (1, 2), "ARG2": (2, 3), "ARG1": (3, 4)}
    doc.spans["srl_1"] = [Span(doc, *place, label=role) for role, place in roles.items()]
    doc.spans["srl_predicates"] = [doc[1:2]]
    pair = nlp.get_pipe("elmo_entailment").make_pair(nlp, TEXT, "Sam gave ham .")
    pair.cats = {"yes": 1.0, "no": 0.0}
    asked = nlp.get_pipe("elmo_qa").make_pair(nlp, "Who gave ham ?", TEXT)
    set_gold(asked, [asked[4:5]])
    unanswered = nlp.get_pipe("elmo_qa").make_pair(nlp, "Why ?", TEXT)
    set_gold(unanswered, [])
    return doc, pair, asked, unanswered


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    fix_random_seed(0)
    nlp = make_nlp()
    for name in ALL:
        nlp.add_pipe(name, config={"model": MODELS[name]})
    golds = make_gold(nlp)
    examples = [Example(gold.copy(), gold) for gold in golds]
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.02
    nlp.select_pipes(enable=["elmo", "ner", "elmo_srl", "elmo_coref"])
    only = [Example(nlp.make_doc(TEXT), golds[0])]
    for _ in range(60):
        nlp.update(only, sgd=optimizer)
    for name in nlp.disabled:
        nlp.enable_pipe(name)
    path = tmp_path_factory.mktemp("tasks") / "pipeline"
    nlp.to_disk(path)
    return path


def test_all_is_printed_and_drawn(folder, tmp_path):
    page = tmp_path / "out" / "page.html"

    printed = run(
        "elmo", "tasks", folder, TEXT, "--question", "Who gave ham ?", "--hypothesis",
        "Sam <gave> ham .", "--html", page,
    )  # fmt: skip

    for title in ("Entities", "Spans", "Categories", "Roles", "Chains", "Answers to", "follow"):
        assert title in printed
    assert "PER: Sam" in printed and "gave; ARG0: Sam" in printed and "Sam = him" in printed
    assert "no answer: " in printed and "yes: " in printed
    text = page.read_text("utf-8")
    assert text.count("<h2>") == 7 and "&lt;gave&gt;" in text and "http" not in text
    assert text.count("Sam") > 5


@pytest.mark.parametrize("threshold", [1.0, 0.0])
def test_an_answer_is_drawn_in_its_text(folder, threshold):
    nlp = spacy.load(folder)
    pipe = nlp.get_pipe("elmo_qa")
    pipe.threshold = threshold
    section = describe_answers(pipe, nlp, "Who gave ham ?", f"<b> {TEXT}")

    answer = pipe.answer(nlp, "Who gave ham ?", f"<b> {TEXT}")
    assert bool(answer.text) == bool(section.html) == bool(threshold)
    if threshold:
        (marked,) = re.findall(r"<mark[^>]*>\s*(.*?)\s*<span[^>]*>(.*?)</span>", section.html)
        assert marked == (escape(answer.text), f"{answer.probability:.0%}")
        assert "<b>" not in section.html


def test_components_of_pairs_need_no_sentences(tmp_path):
    """Their biLM cuts at sentences, which pairs have and a text may not have."""
    nlp = make_nlp(get_spans={"@misc": "spacy-elmo.sentence_spans.v1"})
    nlp.add_pipe("elmo_entailment", config={"model": MODELS["elmo_entailment"]})
    pair = nlp.get_pipe("elmo_entailment").make_pair(nlp, TEXT, "Sam gave ham .")
    other = pair.copy()
    pair.cats, other.cats = {"yes": 1.0, "no": 0.0}, {"yes": 0.0, "no": 1.0}
    nlp.initialize(lambda: [Example(gold.copy(), gold) for gold in (pair, other)])
    nlp.to_disk(tmp_path)

    assert "yes: " in run("elmo", "tasks", tmp_path, TEXT, "--hypothesis", "Sam .")


def test_predicates_are_found_where_others_are_given(folder, tmp_path):
    settings = {"components": {"elmo_srl": {"predicates": "given"}}}
    nlp = spacy.load(folder, config=settings, exclude=["elmo_qa", "elmo_entailment"])
    nlp.to_disk(tmp_path)
    assert spacy.load(tmp_path).get_pipe("elmo_srl").predicates == "given"

    assert "gave; ARG0: Sam" in run("elmo", "tasks", tmp_path, TEXT)


def test_pipelines_without_results_are_an_error(folder, tmp_path):
    make_task("elmo_qa").to_disk(tmp_path / "qa")
    printed = run("elmo", "tasks", tmp_path / "qa", TEXT, exit_code=1)
    assert "needs a question" in printed and "Add --question" in printed

    plain = spacy.blank("en")
    plain.add_pipe("sentencizer")
    plain.to_disk(tmp_path / "plain")

    printed = run("elmo", "tasks", tmp_path / "plain", "Ham .", exit_code=1)
    assert "No component of the pipeline" in printed
    printed = run("elmo", "tasks", tmp_path / "plain", "x", "--question", "Why ?", exit_code=1)
    assert "Cannot answer" in printed and "elmo_qa" in printed
    assert "EL171" in run("elmo", "tasks", tmp_path / "none", "x", exit_code=1)
    run("elmo", "tasks", folder, "x", "--html", tmp_path, exit_code=2)
    assert "nothing" in run("elmo", "tasks", folder, "")
