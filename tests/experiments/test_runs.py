"""Runs of experiments: training, resuming, subsets, summaries."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import spacy
from spacy.cli.train import train
from spacy.tokens import DocBin

from spacy_elmo.experiments.results import describe_suite, format_scores, summarise
from spacy_elmo.experiments.runs import (
    FOUND_PREDICATES,
    Run,
    RunSettings,
    get_score,
    load_base,
    make_run_config,
    run_all,
    run_one,
    write_subset,
)
from spacy_elmo.experiments.variants import choose_variants

from ..support.helpers import ROOT, hash_of
from ..support.toy_corpora import make_docs
from ..support.toy_tasks import make_corpus

PLAIN, ELMO = choose_variants("gain", 2)


def make_settings(corpus, weights="", **changes):
    changes = {"max_steps": 4, "eval_frequency": 2, **changes}
    return RunSettings(str(corpus), "tagger", weights=str(weights), **changes)


def make_result(variant, seed, score, steps, share=1.0):
    """The result of a run, made up."""
    curve = [{"step": s, "epoch": 0, "score": score - 0.1 + s / 100} for s in steps]
    scores = {"tag_acc": score}
    return {
        "variant": variant, "share": share, "seed": seed, "score": "tag_acc", "dev": scores,
        "test": None, "curve": curve, "mixes": [], "n_docs": 7, "seconds": 1.0, "settings": {},
    }  # fmt: skip


def test_runs_train_test_and_resume(tagged_corpus, weights, tmp_path, capsys):
    (tagged_corpus / "._train.spacy").write_bytes(b"of macOS")
    (tagged_corpus / "web.spacy").write_bytes((tagged_corpus / "test.spacy").read_bytes())
    found, output = make_settings(tagged_corpus, weights), tmp_path / "out"
    variants = [PLAIN, choose_variants("placement", 2)[-1]]
    runs = [Run(variant, 1.0, 0) for variant in variants]

    list(run_all(runs[:1], found, output))
    times = {path: path.stat().st_mtime_ns for path in output.iterdir()}
    results = list(run_all(runs, found, output, cache=tmp_path / "cache", verbose=True))

    assert all(path.stat().st_mtime_ns == before for path, before in times.items())
    assert {path.name for path in output.iterdir()} == {f"{run.name}.json" for run in runs}
    (kept,) = (tmp_path / "cache").iterdir()
    assert kept.name == tagged_corpus.name
    assert "both, 100%, seed 0: update 4, dev" in capsys.readouterr().err
    for result, variant in zip(results, variants):
        assert [point["step"] for point in result["curve"]] == [0, 2, 4]
        best = max(point["score"] for point in result["curve"])
        assert result["dev"]["tag_acc"] == pytest.approx(best, abs=1e-6)
        assert result["further"]["web"]["tag_acc"] == result["test"]["tag_acc"]
        places = {mix["place"] for mix in result["mixes"]} - {"shared"}
        assert len(places) == (2 if variant.name == "both" else 0)
        assert result["versions"]["spacy"] and result["settings"]["biLM"] == hash_of(weights)
    summary = describe_suite("toy", variants, results)
    assert all(row["further"]["web"] == row["test"] for row in summary["rows"])


@pytest.mark.slow
def test_runs_in_processes_and_spacy_train_give_the_same_scores(tagged_corpus, weights, tmp_path):
    runs = [Run(variant, 1.0, 3) for variant in (PLAIN, ELMO)]
    found = make_settings(tagged_corpus, weights)

    for result in run_all(runs, found, tmp_path / "out", n_jobs=2):
        name = result["variant"]
        config = make_run_config(runs[["plain", "elmo"].index(name)], found)
        config["paths"]["train"] = str(tagged_corpus / "train.spacy")
        path = tmp_path / f"{name}.cfg"
        spacy.util.load_model_from_config(config, auto_fill=True).config.to_disk(path)
        train(path, tmp_path / name)
        performance = spacy.load(tmp_path / name / "model-best").meta["performance"]
        assert result["dev"]["tag_acc"] == pytest.approx(performance["tag_acc"], abs=0.02)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_parallel_runs(tagged_corpus, tmp_path):
    command = [sys.executable, "-m", "spacy", "elmo", "experiment", "gain", tagged_corpus]
    command += [tmp_path / "out", "--n-jobs", "2", "--eval-frequency", "1"]
    with subprocess.Popen(
        [str(part) for part in command], stderr=subprocess.PIPE, text=True, process_group=0
    ) as process:
        while "update" not in process.stderr.readline():
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        start = time.monotonic()
        error = process.stderr.read()
        process.wait()

    assert process.returncode == 130 and "Interrupted" in error and time.monotonic() - start < 30


def test_runs_with_other_settings_or_docs_are_not_mixed(tagged_corpus, tmp_path):
    run, output = Run(PLAIN, 1.0, 0), tmp_path / "out"
    found = make_settings(tagged_corpus, max_steps=1, eval_frequency=1)
    list(run_all([run], found, output))

    with pytest.raises(ValueError, match="EL065.*max_steps = 1, not 5"):
        list(run_all([run], make_settings(tagged_corpus, max_steps=5, eval_frequency=1), output))
    DocBin(docs=make_docs(5, 9)).to_disk(tagged_corpus / "web.spacy")
    with pytest.raises(ValueError, match="EL065.*web.spacy"):
        list(run_all([run], found, output))
    (tagged_corpus / "web.spacy").write_bytes(b"x")
    with pytest.raises(ValueError, match="EL066.*web.spacy"):
        list(run_all([run], found, output))
    (tagged_corpus / "dev.spacy").unlink()
    with pytest.raises(ValueError, match="EL066.*dev.spacy"):
        list(run_all([run], found, output))


def test_roles_are_also_tested_with_found_predicates(tmp_path):
    vocab = spacy.blank("en").vocab
    for seed, split in enumerate(("train", "dev", "test")):
        DocBin(docs=make_corpus(vocab, 12, seed)).to_disk(tmp_path / f"{split}.spacy")
    config = load_base(str(ROOT / "projects/table1/roles.cfg"))
    # At this threshold, no predicate is found.
    config["components"]["elmo_srl"].update(predicates="given", threshold=1.0)
    config.to_disk(tmp_path / "roles.cfg", interpolate=False)
    changes = {"max_steps": 1, "eval_frequency": 1, "config": str(tmp_path / "roles.cfg")}

    result = run_one(
        Run(PLAIN, 1.0, 0), RunSettings(str(tmp_path), "elmo_srl", **changes), tmp_path
    )

    assert result["test"]["srl_predicate_f"] == 1
    assert result["further"][FOUND_PREDICATES]["srl_predicate_f"] == 0


def test_the_score_of_spans_has_their_key():
    assert get_score("spancat", {"spans_key": "nested"}) == "spans_nested_f"
    assert get_score("spancat", {}) == "spans_sc_f"


@pytest.mark.parametrize("share, seed", [(1.0, 0), (0.5, 1), (0.3, 0), (0.001, 2)])
def test_subsets_are_nested_and_chosen_by_the_seed(tmp_path, share, seed):
    docs = list(make_docs(40))
    for i, doc in enumerate(docs):
        doc.user_data["source"] = i
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "all.spacy")

    def read(part):
        n_docs = write_subset(tmp_path / "all.spacy", tmp_path / "part.spacy", part, seed)
        kept = list(DocBin().from_disk(tmp_path / "part.spacy").get_docs(docs[0].vocab))
        numbers = [doc.user_data["source"] for doc in kept]
        assert [doc.text for doc in kept] == [docs[i].text for i in numbers]
        assert len(numbers) == n_docs == max(1, round(part * 40))
        return numbers

    larger, smaller = read(share), read(share / 2)
    assert larger == read(share) and {*smaller} <= {*larger}


def test_summaries_average_runs_that_differ_in_their_seed():
    results = [
        make_result("elmo", 1, 0.75, [0, 1, 2]),
        make_result("plain", 0, 0.25, [0, 1]),
        {**make_result("elmo", 0, 0.5, [0, 1]), "further": {"web": {"tag_acc": 0.3}}},
        {**make_result("elmo", 0, 0.5, [0], share=0.1), "test": {"tag_acc": None}},
    ]

    part, plain, elmo = summarise([PLAIN, ELMO], results)

    assert plain["dev"] == [25.0] and plain["test"] == []
    assert elmo["seeds"] == [0, 1] and elmo["dev"] == [50.0, 75.0]
    assert format_scores(elmo["dev"]) == "62.50 ± 17.68" and format_scores([]) == "-"
    assert elmo["further"] == {"web": [30.0]}
    # A run that has ended keeps its last score.
    assert [point["step"] for point in elmo["curve"]] == [0, 1, 2]
    np.testing.assert_allclose(elmo["curve"][2]["scores"], [41.0, 67.0])
    assert part["share"] == 0.1 and part["test"] == []
