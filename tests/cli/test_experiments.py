"""`spacy elmo experiment`."""

import re

import pytest

from spacy_elmo.checkpoints.loaders import read_config
from spacy_elmo.experiments import runs
from spacy_elmo.experiments.results import judge_samples
from spacy_elmo.pipeline.presets import make_config

from ..support.toy_pipelines import write_vectors_pipeline
from .test_commands import run


def test_experiments_on_own_data_write_tables_and_pictures(tagged_corpus, weights, tmp_path):
    output, vectors = tmp_path / "out", tmp_path / "vectors"
    quick = ["--weights", weights, "--max-steps", 1, "--eval-frequency", 1, "--seeds", "0"]
    printed = run(
        "elmo", "experiment", "samples", tagged_corpus, output, *quick, "--shares", "10,100"
    )
    write_vectors_pipeline(vectors)
    own = make_config("static_vectors", ["tagger"], shape=read_config(weights))
    own["components"]["tagger"]["model"]["tok2vec"]["encode"] = None
    own.to_disk(tmp_path / "own.cfg")
    command = ["elmo", "experiment", "vectors", tagged_corpus, tmp_path / "own", *quick]
    run(*command, "--config", tmp_path / "own.cfg", "--vectors", vectors)

    assert printed.count("of the same kind would pay") == 2
    assert "with ELMo" in printed and "elmo, 100%, seed 0: update 1, dev" in printed
    names = {path.name for path in output.iterdir()} - {".lock"}
    assert {"samples.json", "samples.png", "samples_updates.png", "plain_0.1_0.json"} <= names
    assert (tmp_path / "own" / "vectors.json").exists()


@pytest.mark.parametrize(
    "scores, expected",
    [
        ([60, 62], r"\+1\.00 .* would pay\."),
        ([60, 60.4], r"\+0\.20 .* little\."),
        ([98, 100], r"\+1\.00 .* little\."),
    ],
)
def test_the_last_doublings_tell_whether_more_annotation_would_pay(scores, expected):
    sizes = zip((25, 100), scores)
    rows = [{"title": "x", "n_docs": n, "dev": [0.0], "test": [score]} for n, score in sizes]
    (line,) = judge_samples([{**rows[0], "n_docs": 5}, *rows])
    assert re.fullmatch(f"x, from 25 to 100 docs: {expected}", line)


def test_mistakes_are_reported_before_anything_is_trained(tagged_corpus, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    command = ["elmo", "experiment", "gain", tagged_corpus, out]
    assert "suite = 'best'" in run("elmo", "experiment", "best", tagged_corpus, out, exit_code=1)
    assert "EL066" in run("elmo", "experiment", "gain", tmp_path, out, exit_code=1)
    assert "EL061" in run(*command, "--component", "eggs", exit_code=1)
    assert "EL012" in run(*command, "--seeds", "0,-1", exit_code=1)
    run(*command, "--seeds", "a", exit_code=2)
    run("elmo", "experiment", "samples", tagged_corpus, out, "--shares", "0,50", exit_code=2)
    command[2] = "vectors"
    assert "Can't find model" in run(*command, "--vectors", tmp_path / "none", exit_code=1)
    assert not list(out.iterdir())
    command[2:5] = ["gain", tagged_corpus, "/proc/nowhere/out"]
    assert "EL145" in run(*command, exit_code=1)


def test_a_stopped_experiment_says_how_to_resume(tagged_corpus, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "run_one", stop)
    printed = run("elmo", "experiment", "gain", tagged_corpus, tmp_path / "out", exit_code=130)
    assert "to continue" in " ".join(printed.split())
