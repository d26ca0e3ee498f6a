"""Sentences as people write them, in lines of about the same length."""

from textwrap import fill

from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.utils import close_up, wrap_evenly

WORDS = st.lists(st.text("ab가.", min_size=1, max_size=12), min_size=1, max_size=30)


@given(WORDS, st.integers(5, 60))
def test_lines_are_as_few_as_they_can_be_and_no_longer(words, most):
    text = " ".join(words)
    wrapped = wrap_evenly(text, most)

    assert wrapped.replace("\n", "").replace(" ", "") == "".join(words)
    assert max(map(len, wrapped.split("\n"))) <= most
    assert wrapped.count("\n") == fill(text, most).count("\n")


def test_no_line_is_a_lone_mark():
    text = "They walked along the bank of the stream ."
    assert fill(text, 40).endswith("\n.")
    assert wrap_evenly(text, 40) == "They walked along the\nbank of the stream ."


def test_marks_stand_at_their_words():
    assert close_up("Well , he sat by the [bank] .") == "Well, he sat by the [bank]."
    assert close_up("a .txt file : ...") == "a .txt file: ..."
