import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_elmo.layers.spans import build_sentence_spans_v1, build_window_spans_v1

VOCAB = spacy.blank("en").vocab


def cut(get_spans, text, **annotations):
    doc = Doc(VOCAB, words=text.split(" "), **annotations)
    return [span.text for span in get_spans([doc])[0]]


WINDOWS = {
    "fits": ("a b c d", ["a b c d"]),
    "full": ("a b c d e f", ["a b c d", "e f"]),
    "after a sentence in the second half": ("a b . d e f", ["a b .", "d e f"]),
    "not in the first half": ("a . c d e f", ["a . c d", "e f"]),
    "the last one": ("a b ! . e f", ["a b ! .", "e f"]),
    "a line break": ("a b \n d e f", ["a b \n", "d e f"]),
    "with its closing quote": ("a b . ” e f", ["a b . ”", "e f"]),
    "another script": ("a b 。 d e f", ["a b 。", "d e f"]),
    "several marks": ("a b ?! d e f", ["a b ?!", "d e f"]),
}


@pytest.mark.parametrize("text, expected", WINDOWS.values(), ids=WINDOWS)
def test_windows_end_where_a_sentence_does(text, expected):
    assert cut(build_window_spans_v1(4), text) == expected


texts = st.lists(st.sampled_from(["a", ".", "\n", "”", "b"]), max_size=30)


@given(texts, st.integers(2, 9))
def test_windows_cover_the_doc_in_order(words, window):
    doc = Doc(VOCAB, words=words)
    spans = build_window_spans_v1(window)([doc])[0]

    assert [token.i for span in spans for token in span] == list(range(len(doc)))
    assert all(1 <= len(span) <= window for span in spans)


def test_windows_do_not_depend_on_annotations():
    get_spans = build_window_spans_v1(4)

    assert cut(get_spans, "a b c d e f", sent_starts=[1, 0, 1, 0, 1, 0]) == ["a b c d", "e f"]


def test_windows_of_no_docs():
    assert build_window_spans_v1()([]) == []
    assert build_window_spans_v1()([Doc(VOCAB)]) == [[]]


def test_sentences_follow_their_starts():
    get_spans = build_sentence_spans_v1(3)

    assert cut(get_spans, "a b c d e f", sent_starts=[1, 0, 1, 0, 0, 0]) == ["a b", "c d e", "f"]
    assert get_spans([Doc(VOCAB)]) == [[]]


def test_sentences_need_their_starts():
    with pytest.raises(ValueError, match=r"EL040.*'a b "):
        cut(build_sentence_spans_v1(), "a b")


@pytest.mark.parametrize(
    "build, key", [(build_window_spans_v1, "window"), (build_sentence_spans_v1, "max_tokens")]
)
def test_tiny_windows_are_refused(build, key):
    with pytest.raises(ValueError, match=f"EL012.*{key} = 1"):
        build(1)
