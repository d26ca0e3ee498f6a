"""Strangers' values and names, as messages show them."""

import pytest

from spacy_elmo.utils import show_name, show_names, show_reason, show_value

VALUES = {
    "text": ("4", '"4"'),
    "number": (4.0, "4.0"),
    "null": (None, "null"),
    "flag": (True, "true"),
    "lines": ("a\nb\x1b[31m", r'"a\nb\u001b[31m"'),
    "surrogate": ("\udc80", r'"\udc80"'),
    "other": ({1, 2}, "(set)"),
}


@pytest.mark.parametrize("value, shown", VALUES.values(), ids=VALUES)
def test_values_are_shown_as_json(value, shown):
    assert show_value(value) == shown


def test_what_is_long_is_cut():
    nested = []
    for _ in range(100_000):
        nested = [nested]
    for value in ("x" * 10_000, list(range(10_000)), 10**4000):
        assert len(show_value(value)) == 80 and show_value(value).endswith("…")
    assert show_value(nested) == "(list)"
    assert len(show_name("x" * 10_000)) == 80


def test_names_are_counted_and_can_be_printed():
    assert show_names([]) == "none"
    assert show_names({"b", "a"}) == "a, b"
    assert show_names(map(str, range(20))).endswith("15 and 12 more")
    assert show_name("\x1b[31m") == r'"\u001b[31m"'


def test_reasons_are_one_line():
    assert show_reason(ValueError("one\n two.")) == "one two"
    assert show_reason(MemoryError()) == "MemoryError"
