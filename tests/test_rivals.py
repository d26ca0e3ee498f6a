"""benchmarks/rivals.py: rows, runs, speed and report, on toy data."""

import io
import re
import sys
from pathlib import Path

import pytest
import spacy
import torch
import typer
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config_from_str
from thinc.api import get_current_ops, set_current_ops
from typer.testing import CliRunner

from spacy_elmo.files import read_json_object, write_json

from .support.toy_corpora import make_docs
from .support.toy_pipelines import write_vectors_pipeline
from .support.toy_rivals import has, write_bilm, write_corpora, write_transformer, write_vectors

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
sys.path.append(str(BENCHMARKS))

from rivals.inputs import DEPTHS, MEDIUM, Inputs  # noqa: E402
from rivals.report import write_report  # noqa: E402
from rivals.rows import ROWS, explain_missing, make_training_config  # noqa: E402
from rivals.runs import Run  # noqa: E402
from rivals.speed import write_measured  # noqa: E402
from rivals.tasks import TASKS  # noqa: E402


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    return write_corpora(tmp_path_factory.mktemp("corpora"))


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with the inputs whose packages are installed."""
    from rivals.configs import make_plain
    from rivals.pretraining import WEIGHTS, run_pretraining

    work = tmp_path_factory.mktemp("work")
    inputs = work / "inputs"
    inputs.mkdir()
    write_vectors(inputs / "vectors")
    write_vectors(inputs / "floret", floret=True)
    write_bilm(inputs / MEDIUM)
    text = inputs / "text.txt"
    text.write_text("".join(f"{doc.text}\n" for doc in make_docs(200)))
    ops, n_threads = get_current_ops(), torch.get_num_threads()
    run_pretraining(make_plain("tagger"), text, inputs / "pretraining", minutes=0.01)
    set_current_ops(ops)
    torch.set_num_threads(n_threads)
    (inputs / "pretraining" / WEIGHTS).rename(inputs / "pretrained")
    if has("spacy_transformers", "floret"):
        from rivals.preparation import cut_transformer

        write_transformer(work / "bert")
        for depth in DEPTHS:
            cut_transformer(work / "bert", depth, inputs / f"minilm_{depth}")
    return work


def make_pipeline(name, task, inputs, corpora):
    config = make_training_config(ROWS[name], TASKS[task]._replace(max_steps=1), inputs, 0)
    for split in ("train", "dev"):
        config["paths"][split] = str(corpora / task / f"{split}.spacy")
    return init_nlp(load_config_from_str(config.to_str(interpolate=False), interpolate=False))


@pytest.mark.parametrize("task", ["ewt", "wnut17"])
@pytest.mark.parametrize("name", ROWS)
def test_every_row_trains(name, task, work, weights, corpora):
    inputs = Inputs(work, str(weights))
    if reason := explain_missing(ROWS[name], inputs):
        pytest.skip(reason)
    nlp = make_pipeline(name, task, inputs, corpora)
    model = nlp.get_pipe(TASKS[task].component).model
    before = model.to_bytes()

    train(nlp, stdout=io.StringIO())

    assert model.to_bytes() != before


def test_rows_of_missing_inputs_say_so(tmp_path):
    assert explain_missing(ROWS["plain_floret"], Inputs(tmp_path)) == "without floret"
    assert explain_missing(ROWS["plain"], Inputs(tmp_path)) == ""


@pytest.mark.parametrize("task", ["ewt", "wnut17"])
def test_pretrained_weights_reach_the_pipeline(task, work, corpora):
    nlp = make_pipeline("plain_pretrained", task, Inputs(work), corpora)

    assert nlp.get_pipe("tok2vec").model.to_bytes() == (work / "inputs/pretrained").read_bytes()


def test_shorter_products_are_those_that_there_are(tmp_path, work, weights, corpora):
    from rivals.precisions import load_variants, score

    inputs, kept = Inputs(work, str(weights)), ["elmo_word_features"]
    kept += ["minilm_2"] if explain_missing(ROWS["minilm_2"], inputs) == "" else []
    for name in [*kept, "plain"]:
        nlp = init_nlp_of(name, inputs, corpora)
        folder = Run(ROWS[name], "ewt", 0).find_model(tmp_path)
        folder.parent.mkdir(parents=True)
        nlp.to_disk(folder)

    variants = load_variants(tmp_path, "ewt")

    assert [name for name in variants if name.endswith("fp32")] == [f"{row} fp32" for row in kept]
    for name, nlp in variants.items():
        precision = name.split()[1]
        if "minilm" in name:
            assert precision in ("fp32", "bf16")
            module = nlp.get_pipe("transformer").model.transformer
            types = {weight.dtype for weight in module.parameters()}
            assert types == {torch.bfloat16 if precision == "bf16" else torch.float32}
        else:
            assert nlp.config["components"]["elmo"]["model"]["precision"] == precision
        [doc] = nlp.pipe(["w1 w2"], batch_size=2)
        assert doc[0].tag_ and nlp("w1 w2")[1].tag_
        assert 0 <= score(nlp, corpora / "ewt/test.spacy", "ewt") <= 100


def init_nlp_of(name, inputs, corpora):
    """A pipeline of a row that was trained a step, which makes its labels known."""
    nlp = make_pipeline(name, "ewt", inputs, corpora)
    train(nlp, stdout=io.StringIO())
    return nlp


def test_the_report_compares_shorter_products_with_the_transformer_as_it_comes():
    from rivals.precision_table import format_precisions

    rates = {"latency": 0.002, "test": 96.0, "is_trained": True}
    measured = {
        "date": "2026-01-01", "machine": "toy", "turns": 1, "tokens": 2,
        "tasks": {"ewt": {
            "elmo_word_features bf16": {**rates, "tokens_per_second": 25000.0},
            "minilm_6 fp32": {**rates, "tokens_per_second": 2500.0, "is_trained": False},
        }},
    }  # fmt: skip

    text = format_precisions(measured)

    assert "| ELMo, word_features | bf16 | 96.00 | 25,000 | 2.0 | 10.0 |" in text
    assert "| MiniLM-L6 frozen, 6 layers, word features | fp32 | - | 2,500 | 2.0 | 1.0 |" in text
    assert format_precisions({}) == ""


def make_result(row, task, seed, score):
    return {
        "row": row, "task": task, "seed": seed, "score": TASKS[task].score,
        "dev": {TASKS[task].score: score}, "test": {TASKS[task].score: score - 0.01},
        "settings": {"max_steps": 9, "patience": 5, "inputs": {"biLM": "abc"}},
        "seconds": 1.0, "cpu_seconds": 1.0, "date": "2026-01-01", "versions": {"spacy": "3"},
        "curve": [{"step": 5, "score": 0.4}, {"step": 9, "score": 0.5 if seed else 0.3}],
    }  # fmt: skip


@pytest.mark.slow
def test_floret_vectors_know_parts_of_words(tmp_path):
    pytest.importorskip("floret")
    from rivals.preparation import train_floret

    texts = [doc.text for doc in make_docs(40)]
    (tmp_path / "text").mkdir()
    (tmp_path / "text/a.txt").write_text("\n".join(texts), "utf-8")

    train_floret(tmp_path / "text", 1, tmp_path / "floret")

    nlp = spacy.load(tmp_path / "floret")
    assert nlp.vocab.vectors.mode == "floret"
    assert nlp.vocab.vectors.shape == (50_000, 300)
    assert (nlp.vocab.vectors.minn, nlp.vocab.vectors.maxn) == (4, 5)
    assert nlp.vocab["unheardof"].vector.any()


def test_parts_that_are_there_were_made_with_the_same_options(tmp_path):
    from rivals.preparation import prepare_all

    write_json(tmp_path / "made.json", {"minutes": 40.0, "epochs": 5, "words": 3})
    with pytest.raises(typer.BadParameter, match="--minutes 40, not 7"):
        prepare_all(tmp_path, "", "", "", tmp_path, minutes=7, epochs=5)
    assert [path.name for path in tmp_path.iterdir()] == ["made.json"]


def test_parts_that_are_there_were_made_of_the_same(tmp_path):
    from rivals.preparation import prepare_all

    made = {"minutes": 40.0, "epochs": 5, "words": 3, "text": "of another text"}
    write_json(tmp_path / "made.json", made)
    (tmp_path / "text").mkdir()
    with pytest.raises(typer.BadParameter, match="made with another --text"):
        prepare_all(tmp_path / "text", "", "", "", tmp_path, minutes=40, epochs=5)
    with pytest.raises(typer.BadParameter, match="--vectors no_such_pipeline: .*E050"):
        prepare_all(tmp_path / "text", "", "no_such_pipeline", "", tmp_path, minutes=40, epochs=5)


def test_vectors_may_be_those_of_a_folder(tmp_path):
    from rivals.preparation import copy_vectors, find_pipeline

    write_vectors_pipeline(tmp_path / "vectors")
    copy_vectors(find_pipeline(str(tmp_path / "vectors")), tmp_path / "copy")
    before, after = (spacy.load(tmp_path / name).vocab.vectors for name in ("vectors", "copy"))
    assert after.shape == before.shape and (after.data == before.data).all()


def test_measurements_leave_nothing_out_that_is_there(tmp_path):
    path = tmp_path / "results" / "speed.json"
    path.parent.mkdir()
    for nothing in ({}, {"ewt": {"onnx_int8": {}}}):
        with pytest.raises(typer.BadParameter, match="has no trained pipelines"):
            write_measured(path, nothing, {})
    write_measured(path, {"ewt": {"plain": {}, "minilm_2": {}}}, {})
    before = path.read_bytes()
    with pytest.raises(typer.BadParameter, match=r"minilm_2 of ewt \(1 in all\)"):
        write_measured(path, {"ewt": {"plain": {}}, "wnut17": {"plain": {}}}, {})
    assert path.read_bytes() == before
    write_measured(path, {"ewt": {"plain": {}, "minilm_2": {}, "minilm_3": {}}}, {})


def test_the_report_shows_what_the_files_say(tmp_path):
    pytest.importorskip("matplotlib")
    for row, seed, score in [
        ("plain", 0, 0.5), ("plain", 1, 0.7), ("plain_vectors", 2, 0.6),
        ("minilm_2", 0, 0.8), ("minilm_3", 0, 0.9),
    ]:  # fmt: skip
        result = make_result(row, "ewt", seed, score)
        write_json(Run(ROWS[row], "ewt", seed).find_result(tmp_path), result)
    on_gpu = {**make_result("minilm_tuned_0.0001", "ewt", 0, 0.4), "device": "toy GPU"}
    path = Run(ROWS["minilm_tuned_0.0001"], "ewt", 0).find_result(tmp_path)
    write_json(path, {**on_gpu, "cpu_seconds": 1e9})
    rates = {"tokens_per_second": 12345.6, "rates": [9000.0, 12345.6, 13000], "latency": 0.0021}
    timed = dict.fromkeys(ROWS, rates)
    speed = {
        "date": "2026-01-01",
        "machine": "toy",
        "turns": 1,
        "tokens": 2,
        "tasks": {"ewt": timed},
    }
    write_json(tmp_path / "results/speed.json", speed)
    slower = {name: {**rates, "tokens_per_second": 1000.0} for name in ("plain", "onnx_int8")}
    elsewhere = {**speed, "machine": "other, 2 threads", "tasks": {"ewt": slower}}
    write_json(tmp_path / "results/speed_other.json", elsewhere)
    write_json(tmp_path / "results/skipped.json", {"rows": {"plain_floret": "no floret"}})

    write_report(tmp_path, tmp_path / "docs/rivals.md")

    text = (tmp_path / "docs/rivals.md").read_text("utf-8")
    assert (
        "| tok2vec | 60.00 ± 14.14 | 59.00 ± 14.14 | 2 | 12,346 (9,000 to 13,000) | 2.1 |" in text
    )
    assert (
        "| UD English EWT, XPOS | toy, 2026-01-01 | other, 2026-01-01 |" in text
        and "| tok2vec | 12,346 (1.0) | 1,000 |" in text
        and "onnxruntime, vectors alone | - | 1,000 |" in text
    )
    # plain's second seed, and the first of plain_vectors.
    assert "Still better at the last update allowed: tok2vec; tok2vec, vectors of" in text
    assert "3 layers, word features | 90.00 | 89.00 | 1 |" in text
    assert "| MiniLM-L6 frozen, 2 layers" not in text.partition("## On several machines")[0]
    frozen = "2 layers, word features, MiniLM-L6 frozen, 3 layers, word features"
    assert f"{frozen}, MiniLM-L6 fine-tuned, rate 0.0001.\n" in text
    assert (
        "floret vectors (no floret)" in text
        and "spacy pretrain (not run yet)" in text
        and "biLM: abc" in text
    )
    assert "GPU (toy GPU): UD English EWT, XPOS, MiniLM-L6 fine-tuned, rate 0.0001.\n" in text
    # A GPU's time is not that of a core.
    assert re.search(r"; 0\.\d hours of one core", text)
    assert (tmp_path / "docs/figures/rivals.png").exists()


@pytest.mark.slow
def test_runs_are_kept_refused_and_renewed(tmp_path, corpora):
    from rivals.processes import SCRIPT

    sys.path.insert(0, str(BENCHMARKS))
    app = load_script(SCRIPT).app
    sys.path.remove(str(BENCHMARKS))

    def invoke(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    def run(*arguments):
        fixed = ["--tasks", "ewt", "--rows", "plain", "--n-jobs", 1]
        return invoke("run", tmp_path, corpora, *fixed, *arguments)

    path = tmp_path / "results/ewt/plain_0.json"
    assert run("--max-steps", 1, "--seeds", "0,1").exit_code == 0
    first = path.read_bytes()
    assert spacy.load(tmp_path / "results/ewt/plain_0/model").pipe_names == ["tagger"]
    assert path.with_name("plain_1.json").exists() and not path.with_name("plain_1").exists()
    assert run("--max-steps", 1, "--seeds", 0).exit_code == 0 and path.read_bytes() == first
    assert run("--max-steps", 2, "--seeds", 0).exit_code == 2 and path.read_bytes() == first
    assert run("--max-steps", 2, "--seeds", 0, "--renew").exit_code == 0
    assert read_json_object(path)["settings"]["max_steps"] == 2
    timed = invoke("speed", tmp_path, corpora, "--turns", 2, "--tokens", 20)
    assert timed.exit_code == 0, timed.output
    speed = read_json_object(tmp_path / "results/speed.json")["tasks"]["ewt"]["plain"]
    assert speed["latency"] > 0 and min(speed["rates"]) > 0
    assert invoke("report", tmp_path, "--output", tmp_path / "page.md").exit_code == 0


@pytest.mark.slow
def test_a_run_that_fails_is_named_and_others_go_on(tmp_path, corpora):
    from rivals.runs import run_all

    for name in ("vectors", "pretrained"):
        (tmp_path / "inputs" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "inputs" / name).write_text("no weights")
    tasks = {"ewt": TASKS["ewt"]._replace(max_steps=1)}
    rows = ["plain_pretrained", "plain"]

    failed = run_all(tasks, rows, [0], Inputs(tmp_path), corpora, n_jobs=2, gpu_id=-1, renew=False)

    assert [run.row.name for run in failed] == ["plain_pretrained"]
    assert (tmp_path / "results/ewt/plain_0.json").exists()
    assert (tmp_path / "results/ewt/plain_pretrained_0/log.txt").exists()


def load_script(path):
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("rivals_script", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
