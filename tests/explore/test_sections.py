"""Sections of annotations: labels of any pipeline are drawn as text."""

import pytest
import spacy
from spacy.tokens import Span

from spacy_elmo.explore.sections import describe_doc
from spacy_elmo.tasks.coref.clusters import PREFIX
from spacy_elmo.tasks.srl.frames import Frame, write_frames

MARKUP = "<img/src=x/onerror=y>"


@pytest.fixture
def doc():
    doc = spacy.blank("en")("Sam gave ham")
    doc[0].tag_ = MARKUP
    doc.set_ents([Span(doc, 0, 1, label=MARKUP, kb_id=MARKUP)])
    doc.spans["sc"] = [Span(doc, 2, 3, label=MARKUP, kb_id=MARKUP)]
    argument = Span(doc, 0, 1, label=MARKUP)
    write_frames(doc, [Frame(Span(doc, 1, 2, label="V"), [(MARKUP, argument)])])
    return doc


@pytest.mark.parametrize("factory", ["tagger", "ner", "spancat", "elmo_srl"])
def test_markup_in_labels_is_drawn_as_text(doc, factory):
    nlp = spacy.blank("en")
    nlp.add_pipe(factory)
    (section,) = describe_doc(doc, nlp)

    assert MARKUP in "".join(section.lines)
    assert "<img" not in section.html and "&lt;img/src=x/onerror=y&gt;" in section.html


def test_senses_have_their_glosses(doc):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo_senses")
    doc[0]._.sense, doc[0]._.sense_gloss = MARKUP, MARKUP
    doc[2]._.sense = "ham%1:13:00::"

    (section,) = describe_doc(doc, nlp)

    assert section.lines == [f"Sam: {MARKUP} ({MARKUP})", "ham: ham%1:13:00::"]


def test_spans_are_those_of_each_components_key(doc):
    nlp = spacy.blank("en")
    nlp.add_pipe("spancat", name="first")
    nlp.add_pipe("spancat_singlelabel", name="second", config={"spans_key": "mine"})
    doc.spans["mine"] = [Span(doc, 0, 1, label="WHO")]

    first, second = describe_doc(doc, nlp)

    assert (first.title, second.title) == ("Spans", "Spans 'mine'")
    assert first.lines == [f"{MARKUP}: ham"] and second.lines == ["WHO: Sam"]
    assert "WHO" in second.html


@pytest.mark.parametrize("key, title", [("ruler", "Spans 'ruler'"), (None, "Entities")])
def test_a_ruler_of_spans_says_what_it_sets(key, title):
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("span_ruler", config={"spans_key": key, "annotate_ents": key is None})
    ruler.add_patterns([{"label": "WHO", "pattern": "Sam"}])

    (section,) = describe_doc(nlp("Sam gave ham"), nlp)

    assert section.title == title and section.lines == ["WHO: Sam"]


def test_what_is_found_across_lines_is_on_one():
    nlp = spacy.blank("en")
    for factory in ("ner", "elmo_srl", "elmo_coref"):
        nlp.add_pipe(factory)
    doc = nlp.make_doc("Sam\n \nHam gave it")
    name = Span(doc, 0, 3, label="PER")
    doc.set_ents([name])
    write_frames(doc, [Frame(Span(doc, 3, 4, label="V"), [("PER", name)])])
    doc.spans[f"{PREFIX}_1"] = [name, doc[4:5]]

    lines = [line for section in describe_doc(doc, nlp) for line in section.lines]

    assert lines == ["PER: Sam Ham", "gave; PER: Sam Ham", "Sam Ham = it"]
