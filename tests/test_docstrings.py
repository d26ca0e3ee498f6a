"""Examples in docstrings run and print their results."""

import doctest
import importlib
from pathlib import Path

import pytest

import spacy_elmo

ROOT = Path(spacy_elmo.__file__).parent
MODULES = [
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
    for path in sorted(ROOT.rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("module", MODULES)
def test_examples_print_their_results(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner, printed = doctest.DocTestRunner(verbose=False), []
    for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(module)):
        runner.run(test, out=printed.append)
    assert runner.tries > 0
    assert runner.failures == 0, "".join(printed)
