"""`spacy elmo experiment`, `probe` and `report`."""

import json
import shutil

import pytest
import spacy
import srsly

from spacy_elmo.checkpoints.loaders import read_config
from spacy_elmo.experiments import jobs, results
from spacy_elmo.experiments.results import get_origin
from spacy_elmo.pipeline.presets import make_config

from ..experiments.test_experiments import make_result
from ..support.helpers import hash_of
from ..support.pipelines import add_vectors
from .test_commands import run


@pytest.mark.slow
def test_experiments_end_in_a_report(tagged_corpus, weights, tmp_path):
    output, report = tmp_path / "out", tmp_path / "docs" / "report.md"
    quick = ["--weights", weights, "--max-steps", 2, "--eval-frequency", 1, "--title", "Toy <b>"]

    printed = run(
        "elmo", "experiment", "samples", tagged_corpus, output, *quick, "--shares", "10,100",
        "--seeds", "0,1", "--n-jobs", 2,
    )  # fmt: skip
    for suite in ("gain", "placement"):
        run("elmo", "experiment", suite, tagged_corpus, output, *quick, "--seeds", "0")
    nlp = spacy.blank("en")
    add_vectors(nlp)
    nlp.to_disk(tmp_path / "vectors")
    own = make_config("static_vectors", ["tagger"], shape=read_config(weights))
    own["components"]["tagger"]["model"]["tok2vec"]["encode"] = None
    own.to_disk(tmp_path / "own.cfg")
    run(
        "elmo", "experiment", "vectors", tagged_corpus, tmp_path / "own", *quick, "--seeds", "0",
        "--config", tmp_path / "own.cfg", "--vectors", tmp_path / "vectors",
    )  # fmt: skip
    shutil.copy(tmp_path / "own" / "vectors.json", output)
    run(
        "elmo", "probe", tagged_corpus, "--weights", weights, "--seeds", "0",
        "--json", output / "probe.json",
    )  # fmt: skip
    run("elmo", "report", output, report, "--title", "Ours")

    assert "with ELMo" in printed and "seed 1: dev" in printed
    assert "plain, 10%, seed 0: started" in printed
    assert "elmo, 100%, seed 1: update 2 of 2, dev" in printed
    assert {path.name for path in output.glob("*.png")} == {
        "samples.png", "samples_updates.png", "gain.png", "gain_updates.png", "placement.png",
        "placement_updates.png",
    }  # fmt: skip
    text, page = report.read_text("utf-8"), report.with_suffix(".html").read_text("utf-8")
    assert text.startswith("# Ours") and text.count("The paper:") == 6
    for part in text.split("](figures/")[1:]:
        assert (report.parent / "figures" / part.split(")")[0]).stat().st_size > 5000
    assert "Toy &lt;b&gt;" in page and page.count("data:image/png") == text.count("](figures/")
    assert "http" not in page


def test_reports_of_nothing_are_refused(tmp_path):
    srsly.write_json(tmp_path / "x.json", {"other": 1})

    assert "EL047" in run("elmo", "report", tmp_path, tmp_path / "x.md", exit_code=1)


def test_bad_settings_are_said(tagged_corpus, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    assert "EL064" in run("elmo", "experiment", "best", tagged_corpus, out, exit_code=1)
    assert "EL066" in run("elmo", "experiment", "gain", tmp_path, out, exit_code=1)
    assert "EL061" in run(
        "elmo", "experiment", "gain", tagged_corpus, out, "--component", "eggs", exit_code=1
    )
    assert "EL151" in run(
        "elmo", "experiment", "gain", tagged_corpus, out, "--seeds", "0,-1", exit_code=1
    )
    assert "EL151" in run("elmo", "probe", tagged_corpus, "--seeds", "-1", exit_code=1)
    run("elmo", "experiment", "gain", tagged_corpus, out, "--seeds", "a", exit_code=2)
    run("elmo", "experiment", "samples", tagged_corpus, out, "--shares", "0,50", exit_code=2)
    run("elmo", "report", out, tmp_path / "x.html", exit_code=2)
    assert "EL066" in run("elmo", "probe", tmp_path, exit_code=1)
    for vectors, problem in ((tmp_path / "none", "Can't find"), (tmp_path / "blank", "empty")):
        spacy.blank("en").to_disk(tmp_path / "blank")
        command = ["elmo", "experiment", "vectors", tagged_corpus, out, "--vectors", vectors]
        printed = run(*command, exit_code=1)
        assert "EL233" in printed and problem in printed.replace("\n", " ")
    # All of it before anything was made.
    assert not list(out.iterdir())
    nowhere = "/proc/nowhere/out"
    assert "EL145" in run("elmo", "experiment", "gain", tagged_corpus, nowhere, exit_code=1)


@pytest.fixture
def quick_runs(monkeypatch):
    """Runs that are not made, but have results."""

    def run_missing(runs, *_):
        for each in runs:
            result = make_result(each.variant.name, each.seed, 0.5, [0])
            yield {**result, **get_origin()}

    monkeypatch.setattr(jobs, "_run_missing", run_missing)


def test_a_full_disk_takes_no_results(tagged_corpus, tmp_path, monkeypatch, quick_runs):
    def write_result(path, *_):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(results, "write_result", write_result)

    printed = run("elmo", "experiment", "gain", tagged_corpus, tmp_path / "out", exit_code=1)

    assert "with ELMo" in printed and "EL145" in printed and "No space" in printed


def test_a_stopped_experiment_says_how_to_go_on(tagged_corpus, tmp_path, monkeypatch, quick_runs):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "_run_missing", stop)
    printed = run("elmo", "experiment", "gain", tagged_corpus, tmp_path / "out", exit_code=130)
    assert "give the same command again" in " ".join(printed.split())


def test_probes_are_printed_and_written(tagged_corpus, weights, tmp_path):
    printed = run(
        "elmo", "probe", tagged_corpus, "--weights", weights, "--json", tmp_path / "x.json",
        "--limit", 20,
    )  # fmt: skip

    assert "word alone" in printed and "LSTM 2" in printed
    result = json.loads((tmp_path / "x.json").read_text())
    assert result["title"] == "corpus" and len(result["layers"]) == 3
    assert result["seconds"] > 0 and result["biLM"] == hash_of(weights)
