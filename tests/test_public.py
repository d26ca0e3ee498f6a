"""The public surface: what `__all__` declares is there, documented, and imported lazily."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import spacy_elmo

SOURCE = ast.parse(Path(spacy_elmo.__file__).read_text("utf-8"))
NAMES = [name for name in spacy_elmo.__all__ if name != "__version__"]
# An example takes more than a docstring holds: a training corpus, or a whole config.
WITHOUT_EXAMPLE = {
    "ElmoCoref", "ElmoEntailment", "ElmoQA", "ElmoSRL", "ElmoSenses", "build_elmo_listener_v2",
    "build_elmo_tok2vec_v2", "build_elmo_v2",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_public_names_resolve_and_are_documented(name):
    thing = getattr(spacy_elmo, name)
    assert thing.__name__ == name and name in dir(spacy_elmo)

    docs = [inspect.getdoc(thing) or ""]
    if inspect.isclass(thing):
        docs += [inspect.getdoc(each) or "" for each in vars(thing).values()]
    assert len(docs[0]) > 40
    assert any("EXAMPLE" in doc for doc in docs) == (name not in WITHOUT_EXAMPLE)


def test_type_checkers_see_the_same_names():
    (block,) = (node for node in SOURCE.body if isinstance(node, ast.If))
    imported = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == spacy_elmo._MODULES
    assert set(imported) == set(NAMES)


def test_other_names_are_errors():
    with pytest.raises(AttributeError, match="'spacy_elmo' has no attribute 'Bert'"):
        _ = spacy_elmo.Bert


def test_components_import_nothing_heavy():
    """Beside spaCy and torch: what a command alone needs is imported by that command."""
    code = (
        "import sys, spacy; nlp = spacy.blank('en'); nlp.add_pipe('elmo'); nlp('a'); "
        "heavy = {'pandas', 'scipy', 'sklearn', 'nltk', 'matplotlib', 'pyarrow', 'sympy'};"
        "print(*heavy & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
