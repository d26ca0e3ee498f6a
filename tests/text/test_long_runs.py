"""Texts with long runs of punctuation."""

import spacy
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.text.long_runs import cut_runs, make_doc

NLP = spacy.blank("en")
RUNS = st.builds(str.__mul__, st.sampled_from("=-_*#.a !?\n"), st.integers(0, 1200))
TEXTS = st.lists(RUNS | st.text(max_size=5), max_size=4).map("".join)


@given(TEXTS)
def test_parts_make_the_text_and_have_no_long_runs(text):
    parts = cut_runs(text)
    assert "".join(parts) == text
    assert all(len(cut_runs(part)) == 1 for part in parts)
    assert len(text) > 500 or parts == [text]


@given(TEXTS.map(lambda text: text[:1000]))
def test_docs_have_the_text(text):
    assert make_doc(NLP.make_doc, text).text == text


def test_other_texts_are_tokenized_as_ever():
    for text in ("", "a" * 5000, "-" * 500, "日" * 5000, "a, b; " * 900):
        doc, other = make_doc(NLP.make_doc, text), NLP.make_doc(text)
        assert [t.text_with_ws for t in doc] == [t.text_with_ws for t in other]


def test_marks_of_a_run_are_words_as_ever():
    text = f"He said {'=' * 3000} so."
    doc, other = make_doc(NLP.make_doc, text), NLP.make_doc(text)
    assert [t.text_with_ws for t in doc] == [t.text_with_ws for t in other]
