"""Listeners warn once if their component "elmo" has not run, with the line that repairs it."""

import pickle

import pytest
import spacy
from spacy.tokens import Doc

from ..support.helpers import TEXTS, make_nlp, tell
from .test_listeners import (
    ELMO,
    LISTENERS,
    add_task,
    make_examples,
    train,
)

TEXT = "I like green eggs"


@pytest.fixture(params=LISTENERS)
def trained(request):
    """A tagger behind an elmo."""
    nlp = make_nlp()
    add_task(nlp, "tagger", LISTENERS[request.param])
    train(nlp)
    return nlp


def disable(nlp, tmp_path):
    nlp.disable_pipe("elmo")
    return nlp


def load_disabled(nlp, tmp_path):
    nlp.to_disk(tmp_path)
    return spacy.load(tmp_path, disable=["elmo"])


def source_alone(nlp, tmp_path):
    other = spacy.blank("en")
    other.add_pipe("tagger", source=nlp)
    return other


def send_away(nlp, tmp_path):
    nlp.disable_pipe("elmo")
    return pickle.loads(pickle.dumps(nlp))


WAYS = [disable, load_disabled, source_alone, send_away]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_listener_without_its_elmo_says_so_once(trained, tmp_path, way):
    nlp = way(trained, tmp_path)

    messages, docs = tell(lambda: list(nlp.pipe(["", *TEXTS])))

    assert len(messages) == 1
    assert "[WL016] A component listens to 'elmo'" in messages[0]
    assert 'nlp.enable_pipe("elmo")' in messages[0] and "vectors it has: none" in messages[0]
    assert tell(nlp, TEXT)[0] == []
    # Every token looks the same.
    assert all(len({token.tag_ for token in doc}) <= 1 for doc in docs)


def test_the_lines_that_the_message_names_mend_it(trained):
    expected = [token.tag_ for token in trained(TEXT)]
    trained.disable_pipe("elmo")
    assert len(tell(trained, TEXT)[0]) == 1
    trained.enable_pipe("elmo")
    assert [token.tag_ for token in trained(TEXT)] == expected

    other = source_alone(trained, None)
    tell(other, TEXT)
    other.add_pipe("elmo", source=trained, first=True)
    assert [token.tag_ for token in other(TEXT)] == expected


def test_a_renamed_elmo_is_named():
    nlp = make_nlp()
    add_task(nlp, "tagger", ELMO)
    train(nlp)
    nlp.rename_pipe("elmo", "other")
    nlp._link_components()

    (message,), _ = tell(nlp, TEXT)

    assert "[WL016] A component listens to 'elmo'" in message
    assert "vectors it has: 'other'" in message


def test_layers_that_were_not_kept_are_told():
    nlp = make_nlp()
    add_task(nlp, "tagger", ELMO)
    train(nlp)
    doc = make_nlp()(TEXT)

    (message,), _ = tell(nlp.get_pipe("tagger"), doc)
    assert "[WL016]" in message and "store_layers = true" in message and TEXT in message
    doc = make_nlp(store_layers=True)(TEXT)
    assert tell(nlp.get_pipe("tagger"), doc)[0] == []


@pytest.mark.parametrize("component", ["tagger", "parser", "textcat", "spancat"])
@pytest.mark.parametrize("kind", LISTENERS)
def test_shape_inference_is_no_mistake(component, kind):
    """Nor is it where elmo is frozen, and so disabled while the others are initialized."""
    nlp = make_nlp()
    add_task(nlp, component, LISTENERS[kind])
    examples = make_examples(nlp)

    with nlp.select_pipes(disable=["elmo"]):
        messages, _ = tell(nlp.initialize, lambda: examples)

    assert [m for m in messages if "WL01" in m] == []
    nlp.initialize(lambda: examples)
    # Docs like those of shape inference cause a warning.
    nlp.disable_pipe("elmo")
    assert ["WL016" in message for message in tell(nlp, TEXT)[0]] == [True]


def test_rows_of_another_width_are_an_error(trained):
    other = make_nlp(width=4, cell_width=3, store_layers=True)
    doc = other(TEXT)

    with pytest.raises(ValueError, match="EL115.*'elmo' for rows of width.*I like.*of (4|12)"):
        trained.get_pipe("tagger")(doc)


def test_a_copied_listener_reads_the_doc(trained):
    """Thinc copies nodes as plain models."""
    tagger = trained.get_pipe("tagger")
    doc = trained(TEXT)
    expected = tagger.model.predict([doc])[0]

    assert (tagger.model.copy().predict([doc])[0] == expected).all()
    assert len(tell(tagger.model.copy().predict, [Doc(trained.vocab, words=["a"])])[0]) == 1
