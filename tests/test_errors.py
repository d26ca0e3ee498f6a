"""Every message is raised in some test, and reads well."""

import re
from pathlib import Path

import pytest

from spacy_elmo import errors

TESTS = "".join(p.read_text("utf-8") for p in Path(__file__).parent.rglob("test_*.py"))
SOURCE = "".join(
    p.read_text("utf-8")
    for p in Path(errors.__file__).parent.rglob("*.py")
    if p.name != "errors.py"
)
MESSAGES = {
    code: text
    for group in (errors.Errors, errors.Warnings)
    for code, text in vars(group).items()
    if re.fullmatch(r"[EW]L\d{3}", code)
}


def test_there_are_messages():
    assert len(MESSAGES) > 30


@pytest.mark.parametrize("code", MESSAGES)
def test_messages_are_used_and_tested(code):
    assert re.search(rf"(Errors|Warnings)\.{code}\b", SOURCE), f"{code} is never raised"
    assert re.search(rf"match=.*{code}|\"{code}|'{code}|\[{code}\]", TESTS), f"{code} is untested"


@pytest.mark.parametrize("code, text", MESSAGES.items(), ids=MESSAGES)
def test_messages_are_not_glued(code, text):
    # A forgotten space between two pieces: "word.Next", "word,next", or a double one.
    names = r"spacy(-elmo)?\.[A-Z]"
    assert not re.search(r"[a-z][.,;:][A-Z]|[a-z][,;][a-z]|  ", re.sub(names, "", text))
    assert text.endswith((".", "?"))
