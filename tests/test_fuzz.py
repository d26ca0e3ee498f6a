"""A moment of fuzzing for each target, always with the same inputs; `python -m tests.fuzz` goes
on for as long as it is let."""

import json
import logging
import random

import pytest

from .fuzz.loop import fuzz
from .fuzz.mutation import bundle, mutate, unbundle
from .fuzz.target import Job, attempt
from .fuzz.targets import TARGETS

# Those that take long for an input.
FEW = {"run_folder": 2, "results": 6, "elmo_coref": 8, "elmo_srl": 8, "elmo_qa": 8, "allennlp": 15}
N_RUNS = 25


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


@pytest.mark.parametrize(
    "err", [KeyError("x"), ValueError("x"), RecursionError(), MemoryError(), AssertionError("x")]
)
def test_other_errors_are_findings(err):
    def run(data):
        if data != b"seed":
            raise err

    result = fuzz(Job([b"seed"], run), n_runs=9)

    assert result.outcomes["fine: NoneType"] >= 1
    (finding,) = result.findings.values()
    assert type(err).__name__ in finding.name and "raise err" in finding.report
    assert result.inputs[finding.name] != b"seed"


@pytest.mark.parametrize("err", [OSError("x"), ValueError("[EL033] x")])
def test_errors_of_ours_are_none(err):
    def run(data):
        raise err

    assert not fuzz(Job([b"seed"], run), n_runs=9).findings


def test_an_error_of_ours_that_hides_a_lack_of_memory_is_one():
    def run(data):
        try:
            raise MemoryError
        except MemoryError as err:
            raise ValueError("[EL033] x") from err

    assert fuzz(Job([b"seed"], run), n_runs=1).findings


def test_mutations_stay_in_their_format():
    rng = random.Random(0)
    seed = bundle({"a.json": b'{"a": [1, {"b": null}]}', "b.txt": b"one\ntwo\n"})
    changed = [mutate(seed, rng) for _ in range(300)]

    assert len(set(changed)) > 200
    contents = [unbundle(data) for data in changed]
    assert all(set(content) <= {"a.json", "b.txt"} for content in contents)
    parsed = [attempt(json.loads, content["a.json"]) for content in contents if "a.json" in content]
    assert sum(each.finding is None for each in parsed) > 150
    rng = random.Random(0)
    assert [mutate(seed, rng) for _ in range(300)] == changed
