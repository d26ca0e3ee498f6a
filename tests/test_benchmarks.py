"""The scripts of benchmarks/ run on toy data."""

import io
import sys
from pathlib import Path

import pytest
import spacy
import typer
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config_from_str
from typer.testing import CliRunner

from spacy_elmo.files import read_json_object, write_json

from .support.helpers import DATA
from .support.toy_rivals import write_bilm, write_corpora, write_transformer, write_vectors

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.append(str(BENCHMARKS))

from rivals.preparation import cut_transformer, find_pipeline  # noqa: E402
from rivals.report import write_report  # noqa: E402
from rivals.rows import (  # noqa: E402
    MEDIUM,
    ROWS,
    TASKS,
    Inputs,
    explain_missing,
    make_training_config,
)
from rivals.runs import SCRIPT, Run  # noqa: E402
from rivals.speed import write_measured  # noqa: E402

# One of each kind.
TRAINED = ("plain_vectors", "plain_floret", "elmo_task_mix", "elmo_tuned_vectors", "minilm_2")


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    return write_corpora(tmp_path_factory.mktemp("corpora"))


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with the inputs whose packages are installed."""
    work = tmp_path_factory.mktemp("work")
    inputs = work / "inputs"
    inputs.mkdir()
    write_vectors(inputs / "vectors")
    write_vectors(inputs / "floret", floret=True)
    write_bilm(inputs / MEDIUM)
    try:
        import spacy_transformers  # noqa: F401
    except ImportError:
        return work
    write_transformer(work / "bert")
    cut_transformer(work / "bert", 2, inputs / "minilm_2")
    return work


@pytest.mark.parametrize("name", TRAINED)
def test_rows_train(name, work, weights, corpora):
    inputs = Inputs(work, str(weights))
    if reason := explain_missing(ROWS[name], inputs):
        pytest.skip(reason)
    config = make_training_config(ROWS[name], TASKS["ewt"]._replace(max_steps=1), inputs, 0)
    for split in ("train", "dev"):
        config["paths"][split] = str(corpora / f"ewt/{split}.spacy")
    text = config.to_str(interpolate=False)
    nlp = init_nlp(load_config_from_str(text, interpolate=False))
    model = nlp.get_pipe("tagger").model
    before = model.to_bytes()

    train(nlp, stdout=io.StringIO())

    assert model.to_bytes() != before


def test_mistakes_are_named(tmp_path):
    assert explain_missing(ROWS["plain_floret"], Inputs(tmp_path)) == "without floret"
    with pytest.raises(typer.BadParameter, match="--vectors no_such_pipeline: .*E050"):
        find_pipeline("no_such_pipeline")
    path = tmp_path / "results" / "speed.json"
    write_measured(path, {"ewt": {"plain": {}, "minilm_2": {}}}, {})
    with pytest.raises(typer.BadParameter, match=r"minilm_2 of ewt \(1 in all\)"):
        write_measured(path, {"ewt": {"plain": {}}, "wnut17": {"plain": {}}}, {})


def test_the_report_shows_the_results(tmp_path):
    pytest.importorskip("matplotlib")
    for row, seed, score in [
        ("plain", 0, 0.5), ("plain", 1, 0.7), ("minilm_2", 0, 0.8), ("minilm_3", 0, 0.9),
    ]:  # fmt: skip
        key = TASKS["ewt"].score
        result = {"score": key, "dev": {key: score}, "test": {key: score - 0.01}}
        write_json(Run(ROWS[row], "ewt", seed).find_result(tmp_path), result)
    rates = {"tokens_per_second": 12345.6, "rates": [9000.0, 12345.6, 13000], "latency": 0.0021}
    speed = {"date": "2026-01-01", "machine": "toy", "tasks": {"ewt": dict.fromkeys(ROWS, rates)}}
    write_json(tmp_path / "results/speed.json", speed)
    slower = {"plain": {**rates, "tokens_per_second": 1000.0}}
    write_json(tmp_path / "results/speed_other.json", {**speed, "tasks": {"ewt": slower}})
    write_json(tmp_path / "results/skipped.json", {"rows": {"plain_floret": "no floret"}})
    precise = {"minilm_6 fp32": {**rates, "test": 96.0, "is_trained": False}}
    write_json(tmp_path / "results/precisions.json", {"tasks": {"ewt": precise}})

    write_report(tmp_path, tmp_path / "page.md")

    text = (tmp_path / "page.md").read_text("utf-8")
    shown = "| tok2vec | 60.00 ± 14.14 | 59.00 ± 14.14 | 2 | 12,346 (9,000 to 13,000) | 2.1 |"
    assert shown in text and "| tok2vec | 12,346 (1.0) | 1,000 |" in text
    # The best of a group on dev.
    assert "3 layers, word features | 90.00 | 89.00 | 1 |" in text
    assert "floret vectors (no floret)" in text and "spacy pretrain (not run yet)" in text
    assert "| fp32 | - | 12,346 (1.0) | 2.1 |" in text
    assert (tmp_path / "figures/rivals.png").exists()


@pytest.mark.slow
def test_rivals_are_trained_kept_timed_and_reported(tmp_path, corpora):
    app = load_script(SCRIPT).app

    def invoke(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    def run(steps):
        fixed = ["--tasks", "ewt", "--rows", "plain", "--n-jobs", 1, "--seeds", 0]
        return invoke("run", tmp_path, corpora, *fixed, "--max-steps", steps).exit_code

    path = tmp_path / "results/ewt/plain_0.json"
    assert run(1) == 0
    first = path.read_bytes()
    assert spacy.load(tmp_path / "results/ewt/plain_0/model").pipe_names == ["tagger"]
    assert run(1) == 0 and run(2) == 2 and path.read_bytes() == first
    timed = invoke("speed", tmp_path, corpora, "--turns", 1, "--tokens", 20)
    assert timed.exit_code == 0, timed.output
    speed = read_json_object(tmp_path / "results/speed.json")["tasks"]["ewt"]["plain"]
    assert speed["latency"] > 0 and min(speed["rates"]) > 0
    assert invoke("report", tmp_path, "--output", tmp_path / "page.md").exit_code == 0


def load_script(path):
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(f"script_{path.stem}", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_short_soak_has_a_table_and_a_verdict():
    app = typer.Typer()
    app.command()(load_script(BENCHMARKS / "soak.py").main)
    pipeline = str(DATA / "toy_pipeline")
    arguments = ["--pipeline", pipeline, "--minutes", "0.02", "--batch-texts", "4"]

    flat = CliRunner().invoke(app, [*arguments, "--most-growth", "1000"])
    grown = CliRunner().invoke(app, [*arguments, "--most-growth", "-1000"])

    assert flat.exit_code == 0 and "Flat: nothing grew." in flat.output
    assert grown.exit_code == 1 and "Not flat: memory by " in grown.output


def test_the_probe_scores_each_layer(tagged_corpus, weights, tmp_path):
    sys.path.append(str(BENCHMARKS.parent / "projects" / "paper"))
    from probe import main

    output = tmp_path / "probe.json"
    main(tagged_corpus, output, str(weights), "tag_", "", "0", 20)

    result = read_json_object(output)
    assert result["experiment"] == "probe" and len(result["layers"]) == 3
    assert result["splits"] == ["dev", "test"] and result["frequent"]["dev"] > 0
