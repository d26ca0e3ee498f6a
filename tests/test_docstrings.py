"""Examples in docstrings do what they say."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

import spacy_elmo
from docs_build.reference import make_pages

ROOT = Path(spacy_elmo.__file__).parent


def find_modules():
    for path in sorted(ROOT.rglob("*.py")):
        if ">>> " in path.read_text("utf-8"):
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts)


def find_examples(module):
    finder = doctest.DocTestFinder(exclude_empty=True)
    return [test for test in finder.find(importlib.import_module(f"spacy_elmo.{module}"))]


@pytest.mark.parametrize("module", list(find_modules()))
def test_examples_do_what_they_say(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(verbose=False)
    printed = []
    for test in find_examples(module):
        if test.examples:
            runner.run(test, out=printed.append)
    assert runner.tries > 0
    assert runner.failures == 0, "".join(printed)


def test_the_reference_names_nothing_private():
    """Notes on attributes of our own are for the code, not for the pages made of docstrings."""
    pages = {name: text for name, text in make_pages().items() if "/source/" not in name}
    found = {name: re.findall(r"`_[a-z]{2}\w*`", text) for name, text in pages.items()}
    assert len(found) > 5
    assert {name: names for name, names in found.items() if names} == {}
