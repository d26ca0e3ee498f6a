"""What follows a training step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.pretraining.config import TrainingSettings
from spacy_elmo.pretraining.log import Progress
from spacy_elmo.pretraining.loop import Due, due

SETTINGS = TrainingSettings(eval_frequency=4, save_frequency=6, log_frequency=3)
frequencies = st.integers(1, 5)


@pytest.mark.parametrize(
    "step, expected",
    [
        (1, Due(evaluate=False, report=False, save=False, stop=False)),
        (3, Due(evaluate=False, report=True, save=False, stop=False)),
        (4, Due(evaluate=True, report=True, save=False, stop=False)),
        (6, Due(evaluate=False, report=True, save=True, stop=False)),
        (11, Due(evaluate=True, report=True, save=True, stop=True)),
    ],
)
def test_what_is_due_follows_from_the_frequencies(step, expected):
    assert due(step, SETTINGS, 11, has_dev=True) == expected


def test_a_requested_stop_is_saved_and_not_evaluated():
    stopped = due(5, SETTINGS, 11, has_dev=True, stop_requested=True)
    assert stopped == Due(evaluate=False, report=True, save=True, stop=True)


@given(st.integers(1, 40), st.integers(1, 40), frequencies, frequencies, frequencies, st.booleans())
def test_a_stop_changes_nothing_but_report_and_checkpoint(step, total, a, b, c, has_dev):
    settings = TrainingSettings(eval_frequency=a, save_frequency=b, log_frequency=c)
    now, stopped = (
        due(step, settings, total, has_dev=has_dev, stop_requested=stop) for stop in (False, True)
    )

    assert stopped.evaluate == now.evaluate and stopped == now.stopping()
    assert now.stop == (step >= total)
    assert has_dev or not now.evaluate
    # An evaluation is part of a report, the end of a run is saved.
    assert now.report >= now.evaluate and now.save >= now.stop


def test_patience_counts_from_the_best_step():
    progress = Progress(position={}, step=4)
    assert progress.update_best(20.0)
    progress.step = 7
    assert not progress.update_best(20.0) and not progress.update_best(float("nan"))
    assert (progress.best, progress.best_step) == (20.0, 4)
    assert [progress.is_out_of_patience(n) for n in (0, 2, 3, 4)] == [False, True, True, False]
