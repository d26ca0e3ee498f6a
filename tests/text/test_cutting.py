"""Texts -> sequences of words: sentence ends, windows, long runs of punctuation, long texts."""

import json
from functools import partial

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_elmo.text import cutting
from spacy_elmo.text.corpus import cutter_maker, read_all_sequences, read_sequences
from spacy_elmo.text.cutting import Cutter, cut_long, cut_runs, cut_sentences, cut_windows, make_doc
from spacy_elmo.text.languages import make_tokenizer

NLP = spacy.blank("en")
RUNS = st.builds(str.__mul__, st.sampled_from("=-_*#.a !?\n"), st.integers(0, 1200))
TEXTS = st.lists(RUNS | st.text(max_size=5), max_size=4).map("".join)


@given(TEXTS)
def test_parts_make_the_text_and_have_no_long_runs(text):
    parts = cut_runs(text)
    assert "".join(parts) == text
    assert all(len(cut_runs(part)) == 1 for part in parts)
    assert len(text) > 500 or parts == [text]


def test_long_runs_and_other_texts_get_the_tokens_of_spacy():
    run = f"He said {'=' * 1200} so."
    for text in ("", "a" * 5000, "-" * 500, "日" * 5000, "a, b; " * 900, run):
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


def test_other_tokenizers_get_long_texts_in_parts():
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


def test_sentences_end_after_final_punctuation():
    text = "He said “ Stop ! ” and left . Did he ? ! Yes ... 3.5 % of them ."
    words = text.split(" ")

    assert [" ".join(s) for s in cut_sentences(words)] == [
        "He said “ Stop ! ” and left .", "Did he ? !", "Yes ...", "3.5 % of them .",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        'He opened the door.\n"Come in," she said.\n"Thank you."',
        "Er ging.\n»Komm herein«, sagte sie.",
        'Chapter One\n"Come in."',
    ],
)
def test_an_opening_mark_belongs_to_its_line(tmp_path, text):
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": text}))
    lines, docs = (
        list(read_sequences(str(tmp_path / name), cutter_maker("en", {})))
        for name in ("a.txt", "a.jsonl")
    )
    assert docs == lines

    words = [token.text for token in spacy.blank("en")(text)]
    windows = list(cut_windows(words, 8))
    assert all(window[-1] not in ('"', "»") or window is windows[-1] for window in windows)


@given(st.lists(st.sampled_from(["a", "B", ".", "?", "”", ")", "\n", "。"])))
def test_cutting_loses_nothing(words):
    assert [w for s in cut_sentences(words) for w in s] == words
    windows = list(cut_windows(words, 3))
    assert [w for s in windows for w in s] == words
    assert all(0 < len(s) <= 3 for s in windows)


def test_sequences_are_sentences_lines_or_windows():
    make = partial(make_tokenizer, "en", {})
    texts = ["I like eggs. You do not.", "", "Ham!"]

    cut = lambda **kw: [" ".join(s) for s in Cutter(make, **kw)(texts, 0)]  # noqa: E731

    assert cut() == ["I like eggs .", "You do not .", "Ham !"]
    assert cut(cut="lines") == ["I like eggs . You do not .", "Ham !"]
    assert cut(window_share=1.0) == ["I like eggs . You do not .", "Ham !"]
    assert cut(cut="windows", max_tokens=6) == ["I like eggs .", "You do not .", "Ham !"]
    with pytest.raises(ValueError, match="EL012.*max_tokens"):
        Cutter(make, max_tokens=0)
    with pytest.raises(ValueError, match="EL012"):
        Cutter(make, cut="paragraphs")


def test_a_tokenizer_with_many_words_is_made_again(monkeypatch):
    monkeypatch.setattr(cutting, "_MAX_WORDS", 1000)
    cutter = Cutter(partial(make_tokenizer, "xx", {}))
    first = cutter.tokenizer
    texts = [[f"word{i} other{i}." for i in range(k, k + 50)] for k in range(0, 1000, 50)]

    found = [cutter(part, 0) for part in texts]

    assert cutter.tokenizer is not first
    assert len(cutter.tokenizer.vocab) < 1500
    fresh = Cutter(partial(make_tokenizer, "xx", {}))
    assert found == [[s for text in part for s in fresh([text], 0)] for part in texts]


def test_a_tokenizer_may_be_any_function():
    vocab = spacy.blank("xx").vocab

    cutter = Cutter(lambda: lambda text: Doc(vocab, words=text.split()))

    assert cutter(["I like eggs.", "Ham !"], 0) == [["I", "like", "eggs."], ["Ham", "!"]]


def test_a_line_break_ends_a_sentence(tmp_path):
    text = "The Harbour\n\nShips come in at night.  They leave\nNobody sees them"
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": text}))
    lines, docs = (
        list(read_sequences(str(tmp_path / name), cutter_maker("en", {})))
        for name in ("a.txt", "a.jsonl")
    )
    assert docs == lines == read_all_sequences(str(tmp_path / "a.txt"), cutter_maker("en", {}))
    assert [" ".join(words) for words in docs] == [
        "The Harbour", "Ships come in at night .", "They leave", "Nobody sees them",
    ]  # fmt: skip
