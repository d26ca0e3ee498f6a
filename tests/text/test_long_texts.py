"""Texts with long runs of punctuation, and long texts."""

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_elmo.text.long_texts import cut_long, cut_runs, make_doc

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


LONG = st.builds(
    str.__mul__, st.sampled_from(["日本。", "é ", "a\n", "😀", "。」", "x"]), st.just(13_000)
)


@given(st.lists(LONG, max_size=3).map("".join))
def test_parts_of_a_long_text_make_it_and_are_short(text):
    parts = cut_long(text)
    assert "".join(parts) == text
    assert all(len(part.encode()) <= 49_149 for part in parts)
    assert len(text.encode()) > 49_149 or parts == [text]


@pytest.mark.parametrize(
    "text, ends",
    [
        ("日本。「来る。」 a\n" * 3000, "\n"),
        ("日本。「来る。」" * 3000, ("。", "。」")),
        ("日本 " * 9000, " "),
    ],
)
def test_a_long_text_is_cut_at_the_best_place(text, ends):
    parts = cut_long(text)
    assert len(parts) > 1 and all(part.endswith(ends) for part in parts)


class LimitedTokenizer:
    """A word for each character, as SudachiPy refuses long texts, with data of a user's."""

    def __init__(self, vocab):
        self.vocab = vocab

    def __call__(self, text):
        if len(text.encode()) > 49_149:
            raise RuntimeError("Input is too long")
        doc = Doc(self.vocab, words=list(text), spaces=[False] * len(text))
        doc.user_data["sub_tokens"] = list(text)
        return doc


def test_a_long_text_is_tokenized_in_parts_where_the_tokenizer_is_another():
    nlp = spacy.blank("xx")
    nlp.tokenizer = LimitedTokenizer(nlp.vocab)
    text = "日本。" * 9000
    for tokenize in (nlp.tokenizer, nlp.make_doc):
        doc = make_doc(tokenize, text)
        assert doc.text == text and len(doc) == len(text) and not doc.user_data
    assert make_doc(nlp.tokenizer, "日本").user_data
    nlp.max_length = 20_000
    with pytest.raises(ValueError, match="E088"):
        make_doc(nlp.make_doc, text)


def test_spacys_own_tokenizer_has_long_texts_whole():
    n_called = []

    def make_doc_once(text):
        n_called.append(len(text))
        return NLP.make_doc(text)

    text = "green eggs and ham. " * 5000
    assert make_doc(NLP.make_doc, text).text == make_doc(make_doc_once, text).text == text
    assert len(n_called) > 1  # a function says nothing of its tokenizer
    one, other = make_doc(NLP.make_doc, text), NLP.make_doc(text)
    assert [t.text_with_ws for t in one] == [t.text_with_ws for t in other]
