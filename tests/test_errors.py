"""Messages are used, have one meaning each, and read well."""

import re
from pathlib import Path

import pytest

from spacy_elmo import errors

SOURCE = "".join(
    path.read_text("utf-8")
    for path in Path(errors.__file__).parent.rglob("*.py")
    if path.name != "errors.py"
)
MESSAGES = {
    code: text
    for group in (errors.Errors, errors.Warnings)
    for code, text in vars(group).items()
    if re.fullmatch(r"[EW]L\d{3}", code)
}


def test_no_code_has_two_meanings():
    text = Path(errors.__file__).read_text("utf-8")
    codes = re.findall(r"^    ([EW]L\d{3}) = ", text, re.M)
    assert len(codes) == len(set(codes)) == len(MESSAGES)


@pytest.mark.parametrize("code", MESSAGES)
def test_messages_are_used(code):
    assert re.search(rf"(Errors|Warnings)\.{code}\b", SOURCE), f"{code} is never raised"


@pytest.mark.parametrize("code, text", MESSAGES.items(), ids=MESSAGES)
def test_messages_are_not_glued(code, text):
    # A forgotten space between two pieces: "word.Next", "word,next", or a double one.
    names = r"spacy(-elmo)?\.[A-Z]"
    assert not re.search(r"[a-z][.,;:][A-Z]|[a-z][,;][a-z]|  ", re.sub(names, "", text))
    assert text.endswith((".", "?"))
