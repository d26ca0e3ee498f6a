"""Frames as span groups of a doc."""

import pytest
import spacy
from spacy import displacy
from spacy.tokens import Doc, DocBin, Span

from spacy_elmo.tasks.srl.frames import (
    describe_frame,
    is_annotated,
    read_frames,
    write_frames,
)

from ...support.toy_roles import make_doc, read

TEXT = "Ann eats ham that Bob makes ."
FRAMES = [
    {"V": (1, 2), "A0": (0, 1), "A1": (2, 6)},
    {"V": (5, 6), "A0": (4, 5), "A1": (2, 3), "R-A1": (3, 4)},
]


@pytest.fixture
def vocab():
    return spacy.blank("en").vocab


@pytest.mark.parametrize("frames", [FRAMES, []], ids=["two", "none"])
def test_frames_survive_docbin_and_bytes(vocab, frames):
    doc = make_doc(vocab, TEXT, *frames)
    (kept,) = DocBin().from_bytes(DocBin(docs=[doc]).to_bytes()).get_docs(vocab)

    for other in (kept, Doc(vocab).from_bytes(doc.to_bytes())):
        assert read(other) == frames
        assert is_annotated(other)
        assert [s.start for s in other.spans["srl_predicates"]] == [f["V"][0] for f in frames]


def test_frames_that_were_there_go_and_other_groups_stay(vocab):
    doc = make_doc(vocab, TEXT, *FRAMES)
    doc.spans["srl_x"] = doc.spans["sc"] = doc.spans["srl_01"] = [doc[:2]]
    write_frames(doc, read_frames(doc)[1:])

    assert set(doc.spans) == {"srl_1", "srl_predicates", "srl_x", "srl_01", "sc"}
    assert read(doc) == FRAMES[1:]


@pytest.mark.parametrize("labels, n", [(["A0"], 0), (["V", "V"], 2), ([], 0)])
def test_groups_need_one_predicate(vocab, labels, n):
    doc = Doc(vocab, words=["Ann", "eats"])
    # A span without tokens is no predicate.
    doc.spans["srl_3"] = [
        Span(doc, 1, 1, label="V"),
        *(Span(doc, i, i + 1, label=label) for i, label in enumerate(labels)),
    ]
    with pytest.raises(ValueError, match=f"EL200.*'srl_3' of the doc 'Ann eats ' has {n} spans"):
        read_frames(doc)


def test_a_frame_is_drawn_beyond_its_sentence(vocab):
    starts = [True, False, True, False, False, True, False]
    doc = Doc(vocab, words=["She", "left", "Ann", "gave", "ham", "Bob", "ate"], sent_starts=starts)
    places = {"V": (3, 4), "A0": (0, 1), "A1": (5, 6)}
    doc.spans["srl_1"] = [Span(doc, *place, label=label) for label, place in places.items()]
    data = describe_frame(read_frames(doc)[0])
    assert data["tokens"] == ["She", "left", "Ann", "gave", "ham", "Bob"]
    drawn = {s["label"]: (s["start_token"], s["end_token"]) for s in data["spans"]}
    assert drawn == places


@pytest.mark.parametrize("starts", [None, [True, False, False, False, True, False, False]])
def test_displacy_draws_a_frame(vocab, starts):
    doc = Doc(vocab, words=TEXT.split(), sent_starts=starts)
    write_frames(doc, read_frames(make_doc(vocab, TEXT)))
    doc.spans["srl_1"] = [Span(doc, *place, label=k) for k, place in FRAMES[1].items()][:2]
    data = describe_frame(read_frames(doc)[0])
    html = displacy.render(data, style="span", manual=True)

    assert data["tokens"] == TEXT.split()[4 if starts else 0 :]
    assert [data["tokens"][s["start_token"]] for s in data["spans"]] == ["makes", "Bob"]
    assert "A0" in html and "Bob" in html
    html = displacy.render(doc, style="span", options={"spans_key": "srl_1"})
    assert "A0" in html
