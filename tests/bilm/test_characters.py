import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.bilm.batch import count_truncated, encode_words

from ..support.oracle import character_ids

BOW, EOW, PAD = 258, 259, 260

WORDS = {
    "empty": ("", [BOW, EOW]),
    "one byte": ("a", [BOW, 97, EOW]),
    "two bytes": ("é", [BOW, 0xC3, 0xA9, EOW]),
    "NUL": ("\0", [BOW, 0, EOW]),
    "begin of sentence": ("<S>", [BOW, 256, EOW]),
    "end of sentence": ("</S>", [BOW, 257, EOW]),
    "lone surrogate": ("a\ud800b", [BOW, 97, 98, EOW]),
    "emoji": ("😀", [BOW, 0xF0, 0x9F, 0x98, 0x80, EOW]),
    "combining": ("e\u0301", [BOW, 101, 0xCC, 0x81, EOW]),
    "fits exactly": ("x" * 6, [BOW, *[120] * 6, EOW]),
    "one too long": ("x" * 7, [BOW, *[120] * 6, EOW]),
    "cut inside a character": ("xxxxx😀", [BOW, *[120] * 5, 0xF0, EOW]),
    "very long": ("x" * 10_000, [BOW, *[120] * 6, EOW]),
}


@pytest.mark.parametrize("word, expected", WORDS.values(), ids=WORDS)
def test_encode_words_follows_the_format(word, expected):
    ids, lengths = encode_words([word], 8)

    assert lengths.tolist() == [len(expected)]
    assert ids[0].tolist() == expected + [PAD] * (8 - len(expected))


@given(st.lists(st.text(st.characters(exclude_categories=[])), max_size=5), st.integers(3, 60))
def test_encode_words_equals_the_oracle_on_any_text(words, max_chars):
    ids, _ = encode_words(words, max_chars)

    assert ids.tolist() == [character_ids(word, max_chars) for word in words]


def test_encode_words_of_nothing():
    ids, lengths = encode_words([], 8)

    assert ids.shape == (0, 8)
    assert lengths.shape == (0,)


def test_count_truncated_counts_distinct_words_by_bytes():
    words = ["x" * 6, "x" * 7, "x" * 7, "é" * 3, "é" * 4, "a"]

    assert count_truncated(words, 8) == 2
