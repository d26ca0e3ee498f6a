"""Custom attributes, whose names all packages of a process share."""

import pickle
import subprocess
import sys

import pytest
from spacy.tokens import Doc

from spacy_elmo.layers.doc_data import add_extension

from ..support.toy_tasks import make_task

NAME = "test_extensions_eggs"


@pytest.fixture(autouse=True)
def clean():
    yield
    if Doc.has_extension(NAME):
        Doc.remove_extension(NAME)


def read(doc):
    return len(doc)


def test_what_another_package_has_registered_stays():
    Doc.set_extension(NAME, default="ham")
    with pytest.warns(UserWarning, match=f"WL060.*Doc._.{NAME}"):
        add_extension(Doc, NAME, getter=read)
    assert Doc.get_extension(NAME)[0] == "ham"


NAMES_OF_OTHERS = """
import spacy
from spacy.tokens import Doc, Token

spacy.blank("en")
for kind, name in (
    (Doc, "coref_chains"), (Doc, "entailment"), (Doc, "qa_answer"), (Doc, "qa_answers"),
    (Token, "sense"), (Token, "sense_gloss"),
):
    kind.set_extension(name, default=name)
doc = spacy.blank("en")("a b")
assert doc._.coref_chains == "coref_chains" and doc[0]._.sense == "sense"
"""


def test_general_names_are_free_where_no_component_needs_them():
    subprocess.run([sys.executable, "-c", NAMES_OF_OTHERS], check=True)


UNPICKLED = """
import pickle, sys

nlp = pickle.loads(sys.stdin.buffer.read())
assert nlp("Ham and eggs .")._.coref_chains is not None
"""


def test_a_component_that_was_pickled_has_its_attributes():
    data = pickle.dumps(make_task("elmo_coref", n_updates=1, with_elmo=False))
    subprocess.run([sys.executable, "-c", UNPICKLED], check=True, input=data)
