"""Components that were trained on the vectors of other weights than they get say so, once."""

from functools import partial

import pytest
import spacy

from spacy_elmo.checkpoints.loaders import build_random_loader_v1
from spacy_elmo.inference.embedder import hash_weights
from spacy_elmo.layers.elmo_layers import get_embedder

from ..support.helpers import TEXTS, add_elmo, assert_close, example, make_nlp, tell
from .test_listeners import ELMO, LISTENERS, PLACES, add_task, make_examples, train

TOLD = "[WL069] 'elmo' has other weights"


def load_others(nlp, seed=5):
    elmo = nlp.get_pipe("elmo")
    elmo.initialize(lambda: [example(nlp)], loader=build_random_loader_v1(seed))


def make_trained(block, **elmo):
    nlp = make_nlp(**elmo)
    add_task(nlp, "tagger", block)
    train(nlp)
    return nlp


@pytest.fixture(params=LISTENERS)
def trained(request):
    """A tagger behind an elmo."""
    return make_trained(LISTENERS[request.param])


def change(nlp, tmp_path):
    load_others(nlp)
    return nlp


def change_loaded(nlp, tmp_path):
    nlp.to_disk(tmp_path)
    return change(spacy.load(tmp_path), tmp_path)


def source(nlp, tmp_path):
    other = make_nlp(seed=5)
    other.add_pipe("tagger", source=nlp)
    return other


WAYS = [change, change_loaded, source]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_other_weights_are_told_once(trained, tmp_path, way):
    assert tell(lambda: list(trained.pipe(TEXTS)))[0] == []

    nlp = way(trained, tmp_path)

    messages, _ = tell(lambda: list(nlp.pipe(TEXTS)))
    assert [message[: len(TOLD)] for message in messages] == [TOLD]
    assert tell(lambda: list(nlp.pipe(TEXTS)))[0] == []


def test_each_listener_of_a_task_tells():
    nlp = make_trained(PLACES["both"])
    load_others(nlp)

    messages, _ = tell(nlp, TEXTS[0])

    assert [TOLD in message for message in messages] == [True, True]


def test_the_lines_that_the_message_names_mend_it(trained):
    expected = [token.tag_ for token in trained(TEXTS[0])]
    load_others(trained)
    tell(trained, TEXTS[0])

    load_others(trained, seed=0)
    messages, doc = tell(trained, TEXTS[0])
    assert messages == [] and [token.tag_ for token in doc] == expected

    load_others(trained)
    assert len(tell(trained, TEXTS[0])[0]) == 0, "told before"
    train(trained)
    load_others(trained, seed=6)
    assert len(tell(trained, TEXTS[0])[0]) == 1


def test_each_of_other_weights_is_told_once(trained):
    told = []
    for seed in (5, 6, 5, 6):
        load_others(trained, seed)
        told.append(len(tell(trained, TEXTS[0])[0]))

    assert told == [1, 1, 0, 0]


def test_a_task_that_is_not_trained_keeps_what_it_was_trained_with(trained):
    """As [training] frozen_components does."""
    add_task(trained, "morphologizer", LISTENERS["own mix"])
    examples = make_examples(trained)
    trained.get_pipe("morphologizer").initialize(lambda: examples, nlp=trained)
    load_others(trained)

    trained.update(examples, sgd=trained.resume_training(), exclude=["tagger"])

    assert [TOLD in message for message in tell(trained, TEXTS[0])[0]] == [True]
    load_others(trained, seed=0)
    # The morphologizer's.
    assert [TOLD in message for message in tell(trained, TEXTS[0])[0]] == [True]
    trained.remove_pipe("morphologizer")
    assert tell(trained, TEXTS[0])[0] == []


def test_a_task_learns_from_an_annotating_elmo(trained, tmp_path):
    """Of which `update` is never called where it is frozen as a component, too."""
    load_others(trained)
    trained.to_disk(tmp_path)
    nlp = spacy.load(tmp_path)
    update = partial(nlp.update, sgd=nlp.resume_training(), exclude=["elmo"], annotates=["elmo"])

    assert tell(update, make_examples(nlp))[0] == []

    nlp.to_disk(tmp_path)
    nlp = spacy.load(tmp_path)
    assert tell(nlp, TEXTS[0])[0] == []
    load_others(nlp, seed=0)
    assert [TOLD in message for message in tell(nlp, TEXTS[0])[0]] == [True]


@pytest.mark.parametrize("kind", LISTENERS)
def test_what_is_loaded_says_what_it_was_trained_with(kind, tmp_path):
    nlp = make_trained(LISTENERS[kind])
    make_trained(LISTENERS[kind], frozen=False).to_disk(tmp_path)

    nlp.from_disk(tmp_path)

    assert tell(nlp, TEXTS[0])[0] == []


@pytest.mark.parametrize("kind", LISTENERS)
def test_a_bilm_that_learns_with_its_tasks_is_no_other_one(kind, tmp_path):
    nlp = make_trained(LISTENERS[kind], frozen=False)
    nlp.to_disk(tmp_path)

    assert tell(nlp, TEXTS[0])[0] == tell(spacy.load(tmp_path), TEXTS[0])[0] == []


def test_what_was_saved_before_is_not_asked(trained, tmp_path):
    for node in trained.get_pipe("tagger").model.walk():
        node.attrs.pop("biLM", None)
    trained.to_disk(tmp_path)

    nlp = change(spacy.load(tmp_path), tmp_path)

    assert tell(nlp, TEXTS[0])[0] == []


def test_of_two_elmos_each_has_its_own():
    nlp = make_nlp()
    add_elmo(nlp, "other", seed=2)
    add_task(nlp, "tagger", {**LISTENERS["own mix"], "upstream": "other"})
    train(nlp)
    load_others(nlp)

    assert tell(nlp, TEXTS[0])[0] == []


def test_training_makes_other_weights():
    nlp = make_trained(ELMO, frozen=False)
    elmo, optimizer = nlp.get_pipe("elmo"), nlp.create_optimizer()
    optimizer.learn_rate = 0.1
    before = nlp(TEXTS[0])
    nlp.update(make_examples(nlp), sgd=optimizer)
    # Somebody predicts before the last gradients are applied.
    nlp(TEXTS[0])
    elmo.finish_update(optimizer)

    after, loaded = nlp(TEXTS[0]), make_nlp(frozen=False, seed=1)
    loaded.get_pipe("elmo").from_bytes(elmo.to_bytes())
    assert_close([after.tensor], [loaded(TEXTS[0]).tensor])
    weights = [doc._.elmo["elmo"]["biLM"] for doc in (before, after)]
    real = hash_weights(get_embedder(elmo.model).bilm, "fp32").hex()
    assert weights[0] != weights[1] == real
