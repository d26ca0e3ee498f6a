"""A moment of fuzzing for each target, always with the same inputs; `python -m tests.fuzz` goes
on for as long as it is let."""

import logging

import pytest

from .fuzz.loop import fuzz
from .fuzz.target import attempt
from .fuzz.targets import TARGETS

# Those that take long for an input.
FEW = {"run_folder": 6, "results": 12, "elmo_qa": 25, "pretraining_config": 25, "task_config": 12}
N_RUNS = 40


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.CRITICAL, "spacy_elmo")


@pytest.mark.parametrize("name", TARGETS)
def test_any_input_gives_a_result_or_an_error_of_ours(tmp_path, name):
    job = TARGETS[name](tmp_path)
    outcomes = [attempt(job.run, seed).outcome for seed in job.seeds]
    assert all(outcome.startswith("fine") for outcome in outcomes), outcomes

    result = fuzz(job, n_runs=FEW.get(name, N_RUNS))

    assert not result.findings, "\n".join(each.report for each in result.findings.values())
