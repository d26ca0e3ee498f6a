import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.checkpoints.formats import read_words, write_words
from spacy_elmo.language_model.vocabulary import SPECIAL_WORDS, Vocabulary, WordCounter


def count(text):
    counter = WordCounter()
    counter.add([line.split() for line in text.splitlines()])
    return counter


def test_frequent_words_come_first_and_special_ones_before_all():
    vocabulary = count("b a a c\nb a <UNK> d").make_vocabulary(size=0, min_count=1)

    assert vocabulary.words == ["<S>", "</S>", "<UNK>", "a", "b", "c", "d"]
    assert vocabulary.encode(["a", "x", "<S>"]).tolist() == [3, 2, 0]


def test_size_counts_the_special_words_and_not_those_to_include():
    counter = count("b a a c\nb a d d d")

    assert counter.make_vocabulary(size=5, min_count=1).words[3:] == ["a", "d"]
    assert counter.make_vocabulary(size=0, min_count=2).words[3:] == ["a", "d", "b"]
    included = counter.make_vocabulary(size=4, min_count=1, include=["zebra", "b", "</S>"])
    assert included.words[3:] == ["a", "b", "zebra"]


def test_counting_forgets_the_rarest_words_when_there_are_too_many():
    counter = WordCounter(max_types=3)
    counter.add([["a"] * 5, ["b"] * 5, ["c", "d", "e", "e"]])

    assert counter.pruned_below == 1
    assert set(counter.counts) == {"a", "b", "e"}


@given(st.lists(st.text(min_size=1), unique=True))
def test_any_words_survive_the_file(tmp_path, words):
    counter = WordCounter()
    counter.add([[w.encode("utf-8", "ignore").decode() for w in words]])
    vocabulary = counter.make_vocabulary(size=0, min_count=1)
    write_words(tmp_path / "vocab.txt", vocabulary.words)

    assert Vocabulary(read_words(tmp_path / "vocab.txt")) == vocabulary


@pytest.mark.parametrize("words", [["a", "b"], [*SPECIAL_WORDS, "a", "a"], []])
def test_other_lists_are_refused(words):
    with pytest.raises(ValueError, match="EL071"):
        Vocabulary(words)
