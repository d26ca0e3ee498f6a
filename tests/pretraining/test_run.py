"""Pretraining from a config: resume, several processes, all inputs, all softmaxes."""

import io
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo import load_embedder, pipe_config
from spacy_elmo.checkpoints.formats import CheckpointFiles, find_reader, read_words
from spacy_elmo.language_model.evaluation import evaluate_checkpoint
from spacy_elmo.pretraining.config import SCHEDULES, RunConfig
from spacy_elmo.pretraining.config_files import (
    PRETRAINING_PRESETS,
    load_config,
    make_pretraining_config,
)
from spacy_elmo.pretraining.corpus_report import describe_corpus, find_quantile
from spacy_elmo.pretraining.log import LOG_FILE, RunLog, read_log
from spacy_elmo.pretraining.prepare import make_shape, prepare
from spacy_elmo.pretraining.processes import Processes
from spacy_elmo.pretraining.run import pretrain

from ..support.helpers import SHAPE, assert_close
from ..support.runs import SMALL, all_bytes, train, write_config
from ..support.toy import make_options, make_weights, write_model


def test_a_run_learns_and_its_result_can_be_used(tmp_path, texts):
    reports = []
    train(tmp_path, texts, reports=reports, training={**SMALL["training"], "max_steps": 120})

    scores = [report.dev.perplexities[2] for report in reports if report.dev]
    assert scores[-1] < 0.5 * scores[0]
    # Nobody can know the noun before "I like": no better than chance among the rest.
    assert scores[-1] > 2
    folder = tmp_path / "run" / "model-best"
    assert evaluate_checkpoint(folder, str(texts / "dev"))["geometric_mean"] == pytest.approx(
        min(scores), rel=1e-3
    )
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config=pipe_config(folder))
    nlp.get_pipe("elmo").load(folder)
    assert nlp("I like eggs").tensor.shape == (3, 8)
    assert srsly.read_json(folder / "meta.json")["dev_perplexity"]["kind"] == "exact"


@pytest.mark.parametrize("state_steps", [0, 5])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_stopping_and_going_on_changes_nothing(tmp_path, texts, state_steps, accumulate):
    training = {**SMALL["training"], "state_steps": state_steps, "accumulate": accumulate}
    train(tmp_path, texts, "straight", training=training)
    for stop_at in (5, 3, 0):
        train(tmp_path, texts, "stopped", resume=True, stop_at=stop_at, training=training)

    assert all_bytes(tmp_path / "stopped") == all_bytes(tmp_path / "straight")


def command(config, output, *arguments, n_processes=1, max_restarts=0):
    launch = ["-m"]
    if n_processes > 1:
        launch = ["-m", "torch.distributed.run", "--standalone"]
        launch += ["--nproc-per-node", str(n_processes), "--max-restarts", str(max_restarts), "-m"]
    return [sys.executable, *launch, "spacy", "elmo", "pretrain", config, output, *arguments]


def run(*arguments, **settings):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [str(a) for a in command(*arguments, **settings)],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0, 1, 2])
def test_killed_at_a_random_moment_and_resumed(tmp_path, texts, moment):
    settings = {**SMALL["training"], "max_steps": 60}
    config = write_config(tmp_path, texts, training=settings)
    process = subprocess.Popen(
        [str(a) for a in command(config, tmp_path / "killed")],
        stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    checkpoints = tmp_path / "killed" / "checkpoints"
    while process.poll() is None and not list(checkpoints.glob("step-?????????")):
        time.sleep(0.01)
    time.sleep(random.Random(moment).random() * 0.4)
    process.kill()
    process.wait()

    run(config, tmp_path / "killed", "--resume")
    run(config, tmp_path / "straight")

    assert all_bytes(tmp_path / "killed") == all_bytes(tmp_path / "straight")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGTERM")
def test_sigterm_and_max_minutes_end_with_a_checkpoint(tmp_path, texts):
    config = write_config(tmp_path, texts, training={**SMALL["training"], "max_steps": 10_000})
    process = subprocess.Popen(
        [str(a) for a in command(config, tmp_path / "a")], stderr=subprocess.PIPE
    )
    while not list((tmp_path / "a").glob("checkpoints/step-?????????")):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=60)[1].decode()

    assert process.returncode == 0
    step = all_bytes(tmp_path / "a")[1]["step"]
    assert f"Step {step}" in output and (tmp_path / "a" / "model-last").exists()
    assert "Step 1 of" in run(config, tmp_path / "b", "--max-minutes", "0.00001")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("batch_tokens", [80, 9])  # with 9, some steps are of one sequence
def test_two_processes_are_one(tmp_path, texts, batch_tokens):
    exact = {"dropout": 0.0, "softmax": {"kind": "full"}, "max_steps": 8}
    exact["batch_tokens"] = batch_tokens
    config = write_config(tmp_path, texts, training={**SMALL["training"], **exact})
    run(config, tmp_path / "one")
    run(config, tmp_path / "two", "--max-minutes", "0.00001", n_processes=2)
    # They stopped after a step; others go on, and could be of another number.
    run(config, tmp_path / "two", "--resume", n_processes=2)

    one, two = (load_embedder(tmp_path / name / "model-last") for name in ("one", "two"))
    for (name, a), (_, b) in zip(one.bilm.state_dict().items(), two.bilm.state_dict().items()):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-3, msg=name)
    states = [all_bytes(tmp_path / name)[1] for name in ("one", "two")]
    assert states[0]["position"] == states[1]["position"]
    assert states[0]["best"] == pytest.approx(states[1]["best"], rel=1e-4)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.timeout(300)
def test_torchrun_goes_on_when_a_process_was_killed(tmp_path, texts):
    config = write_config(tmp_path, texts, training={**SMALL["training"], "max_steps": 60})
    arguments = command(config, tmp_path / "two", n_processes=2, max_restarts=1)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [str(a) for a in arguments], stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        while not list((tmp_path / "two").glob("checkpoints/step-?????????")):
            assert process.poll() is None
            time.sleep(0.05)
        workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(workers[-1]), signal.SIGKILL)
        log = process.communicate()[1]

    assert process.returncode == 0, log[-2000:]
    assert log.count("Started from") == 1  # the first process alone tells
    state = all_bytes(tmp_path / "two")[1]
    assert state["step"] == 60
    train(tmp_path, texts, "one", training={**SMALL["training"], "max_steps": 60})
    assert state["position"] == all_bytes(tmp_path / "one")[1]["position"]


@pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
def test_every_softmax_trains_and_is_scored_exactly(tmp_path, texts, kind):
    settings = {"full": {}, "sampled": {"n_samples": 10}, "adaptive": {"cutoffs": [5]}}
    softmax = {"kind": kind, **settings[kind]}
    reports = []
    train(tmp_path, texts, reports=reports, training={**SMALL["training"], "softmax": softmax})

    result = evaluate_checkpoint(tmp_path / "run" / "model-last", str(texts / "dev"))
    assert result["geometric_mean"] == pytest.approx(reports[-1].dev.perplexities[2], rel=1e-3)


@pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
def test_a_softmax_needs_no_settings(tmp_path, texts, kind):
    training = {**SMALL["training"], "softmax": {"kind": kind}}
    corpus = {**SMALL["corpus"], "size": 30_000}

    # Warnings are errors here.
    RunConfig.check(load_config(write_config(tmp_path, texts, corpus=corpus, training=training)))


@pytest.mark.parametrize("input", ["characters", "words", "vectors"])
def test_every_input_trains_and_is_used_in_a_pipeline(tmp_path, texts, input):
    nlp = spacy.blank("en")
    for i, word in enumerate(("ham", "eggs", "like")):
        nlp.vocab.set_vector(word, np.eye(5, dtype="float32")[i])
    nlp.to_disk(tmp_path / "vectors")
    paths = {"train": str(texts / "train"), "vectors": str(tmp_path / "vectors")}
    train(tmp_path, texts, bilm={**SHAPE, "input": input}, paths=paths)

    folder = tmp_path / "run" / "model-last"
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config=pipe_config(folder))
    nlp.get_pipe("elmo").load(folder)
    doc = nlp("I like ham and tofu")
    nlp.to_disk(tmp_path / "nlp")
    assert_close([spacy.load(tmp_path / "nlp")(doc.text).tensor], [doc.tensor])
    unknown, other = nlp("tofu").tensor, nlp("seitan").tensor
    assert np.allclose(unknown, other, atol=1e-6) == (input != "characters")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_schedule_sets_the_rate_of_each_step(tmp_path, texts, schedule):
    training = {**SMALL["training"], "schedule": schedule, "log_frequency": 1, "max_steps": 9}
    reports = []
    train(tmp_path, texts, reports=reports, training={**training, "eval_frequency": 100})

    rates = [report.learn_rate for report in reports]
    assert rates[:3] == pytest.approx([0.0025, 0.005, 0.0075])  # a warm-up of 3 steps
    assert max(rates) == rates[3] == pytest.approx(0.01)
    assert rates[-1] < 0.007


def test_a_run_can_start_from_weights_alone(tmp_path, texts):
    train(tmp_path, texts, "first")
    first = tmp_path / "first" / "model-last"
    paths = {"train": str(texts / "train"), "dev": str(texts / "dev"), "init": str(first)}
    # So low a rate changes next to nothing: what it starts from is what it ends with.
    training = {**SMALL["training"], "max_steps": 2, "learn_rate": 1e-9}
    corpus = {**SMALL["corpus"], "size": 10}

    train(tmp_path, texts, "second", paths=paths, training=training, corpus=corpus)

    second = tmp_path / "second" / "model-last"
    sentences = [["I", "like", "eggs"]]
    assert_close(load_embedder(second).embed(sentences), load_embedder(first).embed(sentences))
    vocab = tmp_path / "second" / "vocab.txt"
    assert len(vocab.read_text().split()) == 10
    restricted = evaluate_checkpoint(first, str(texts / "dev"), vocab=vocab)
    assert restricted["n_words_scored"] == 10
    # The softmax too, where it has the words; the smaller one predicts the same among them.
    again = evaluate_checkpoint(second, str(texts / "dev"), vocab=vocab)
    rows = [
        dict(zip(words, stored.state["weight"]))
        for stored in (native_softmax(first), native_softmax(second))
        for words in [stored.words]
    ]
    assert len(rows[1]) == 10 and again["n_words_scored"] == 10
    for word, row in rows[1].items():
        torch.testing.assert_close(row, rows[0][word])


def test_a_run_can_start_from_the_words_of_another_shape(tmp_path, texts):
    train(tmp_path, texts, "first")
    first = tmp_path / "first" / "model-last"
    paths = {"train": str(texts / "train"), "dev": None, "init": str(first)}
    training = {**SMALL["training"], "max_steps": 1, "learn_rate": 1e-9, "init_part": "words"}
    larger = {**SHAPE, "cell_width": 2 * SHAPE["cell_width"], "depth": SHAPE["depth"] + 1}

    train(tmp_path, texts, "second", bilm=larger, paths=paths, training=training)

    second = tmp_path / "second" / "model-last"
    words = [["I", "like", "eggs"]]
    arrays = [load_embedder(folder).embed(words)[0] for folder in (first, second)]
    assert arrays[1].shape[0] == arrays[0].shape[0] + 1
    assert_close([arrays[1][0]], [arrays[0][0]])
    torch.testing.assert_close(
        native_softmax(second).state["weight"], native_softmax(first).state["weight"]
    )
    for more in ({"width": 16}, {"width": 16, "projection": False, "cell_width": 8}):
        with pytest.raises(ValueError, match="EL097.*width: 16, 8"):
            train(tmp_path, texts, "third", bilm={**larger, **more}, paths=paths, training=training)
    with pytest.raises(ValueError, match="EL091.*init_part"):
        train(tmp_path, texts, "fourth", training={**training, "init_part": "half"})


@pytest.mark.parametrize("part", ["all", "cells", "words"])
def test_a_run_that_started_from_a_part_resumes_with_all(tmp_path, texts, part):
    train(tmp_path, texts, "first")
    paths = {"train": str(texts / "train"), "dev": str(texts / "dev")}
    changes = {
        "paths": {**paths, "init": str(tmp_path / "first" / "model-last")},
        "training": {**SMALL["training"], "init_part": part},
    }
    train(tmp_path, texts, "whole", **changes)

    train(tmp_path, texts, "parts", stop_at=7, **changes)
    train(tmp_path, texts, "parts", resume=True, **changes)

    assert all_bytes(tmp_path / "parts") == all_bytes(tmp_path / "whole")


@pytest.mark.parametrize("has_projection", [True, False])
def test_a_run_can_start_from_fewer_cells(tmp_path, texts, has_projection):
    cell_width = SHAPE["cell_width"] if has_projection else SHAPE["width"] // 2
    smaller = {**SHAPE, "cell_width": cell_width, "projection": has_projection}
    train(tmp_path, texts, "first", bilm=smaller)
    first = tmp_path / "first" / "model-last"
    paths = {"train": str(texts / "train"), "dev": None, "init": str(first)}
    training = {**SMALL["training"], "max_steps": 1, "learn_rate": 1e-9, "init_part": "cells"}
    larger = {**SHAPE, "cell_width": cell_width + 5, "projection": True}

    train(tmp_path, texts, "second", bilm=larger, paths=paths, training=training)

    second = tmp_path / "second" / "model-last"
    sentences = [["I", "like", "eggs"], ["Sam"]]
    before, after = (load_embedder(folder) for folder in (first, second))
    assert after.bilm.config.cell_width == cell_width + 5
    assert_close(after.embed(sentences), before.embed(sentences))
    torch.testing.assert_close(
        native_softmax(second).state["weight"], native_softmax(first).state["weight"]
    )
    # What the new cells hold is no copy of what is there, and is learned from at once.
    layer = after.bilm.forward_lstm.layers[0]
    assert layer.weight.unflatten(-1, (4, -1))[..., cell_width:].abs().max() > 0.01
    training["learn_rate"] = 0.01
    train(tmp_path, texts, "third", bilm=larger, paths=paths, training=training)
    layer = load_embedder(tmp_path / "third" / "model-last").bilm.forward_lstm.layers[0]
    assert layer.projection[cell_width:].abs().max() > 0.001

    for wrong, message in [
        ({"cell_width": cell_width - 1}, f"cell_width: {cell_width - 1}, {cell_width}"),
        ({"depth": SHAPE["depth"] + 1}, "depth: 3, 2"),
    ]:
        with pytest.raises(ValueError, match="EL097.*" + message):
            train(tmp_path, texts, "w", bilm={**larger, **wrong}, paths=paths, training=training)


def test_a_part_of_weights_needs_a_shape_that_has_it(tmp_path, texts):
    own = {**SHAPE, "projection": False, "cell_width": SHAPE["width"] // 2}
    paths = {"train": str(texts / "train"), "dev": None}
    for name, bilm in ("own", own), ("words", {**SHAPE, "input": "words"}):
        train(tmp_path, texts, name, bilm=bilm, paths=paths)
    for part, name, bilm, message in [
        ("cells", "own", own, "projection.*true with init_part"),
        ("cells", "words", {**SHAPE, "input": "words"}, 'input.*"characters" with init_part'),
        ("words", "words", {**SHAPE, "input": "words"}, 'input.*"characters" with init_part'),
    ]:
        init = {**paths, "init": str(tmp_path / name / "model-last")}
        training = {**SMALL["training"], "max_steps": 1, "init_part": part}
        with pytest.raises(ValueError, match="EL091.*" + message):
            train(tmp_path, texts, "w", bilm=bilm, paths=init, training=training)


def native_softmax(folder):
    files = CheckpointFiles.of(folder)
    return find_reader(files).read_softmax(files)


def test_a_word_table_can_start_from_another_vocabulary(tmp_path, texts):
    bilm = {**SHAPE, "input": "words"}
    train(tmp_path, texts, "first", bilm=bilm)
    first = tmp_path / "first" / "model-last"
    paths = {"train": str(texts / "train"), "init": str(first)}
    training = {**SMALL["training"], "max_steps": 1, "learn_rate": 1e-9}
    corpus = {**SMALL["corpus"], "size": 7}
    train(tmp_path, texts, "second", bilm=bilm, paths=paths, training=training, corpus=corpus)

    ours, theirs = (load_embedder(f) for f in (tmp_path / "second" / "model-last", first))
    kept = (tmp_path / "second" / "vocab.txt").read_text().split()[3:]
    assert ours.bilm.config.n_words == len(kept) == 4 < theirs.bilm.config.n_words
    assert_close(ours.embed([kept]), theirs.embed([kept]))


def test_a_run_can_start_from_published_weights(tmp_path, texts):
    options = make_options()
    pair = write_model(tmp_path / "published", options, make_weights(options))
    shape = load_embedder(tmp_path / "published").bilm.config.to_dict()
    init = dict(zip(("init", "init_weights"), map(str, pair)))
    paths = {"train": str(texts / "train"), "dev": None, **init}
    training = {**SMALL["training"], "max_steps": 2, "learn_rate": 1e-9}

    train(tmp_path, texts, paths=paths, bilm=shape, training=training)

    sentences = [["I", "like", "eggs"]]
    assert_close(
        load_embedder(tmp_path / "run" / "model-last").embed(sentences),
        load_embedder(tmp_path / "published").embed(sentences),
    )
    with pytest.raises(ValueError, match="EL097.*width: 16, 8"):
        train(tmp_path, texts, "other", paths=paths, bilm={**SHAPE, "width": 16})


def test_early_stop(tmp_path, texts):
    training = {**SMALL["training"], "learn_rate": 0.0, "patience": 4, "max_steps": 100}

    assert train(tmp_path, texts, training=training).step == 8
    # It has ended, and more patience is needed to go on.
    assert train(tmp_path, texts, resume=True, training=training).step == 8
    training["patience"] = 8
    assert train(tmp_path, texts, resume=True, training=training).step == 12


def test_torchrun_starts_over_from_the_last_checkpoint(tmp_path, texts, monkeypatch):
    train(tmp_path, texts, stop_at=4)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")

    assert train(tmp_path, texts).step == 12


def test_folders_with_a_run_are_not_started_over(tmp_path, texts, caplog):
    train(tmp_path, texts)
    with pytest.raises(ValueError, match="EL095.*--resume"):
        train(tmp_path, texts)
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(ValueError, match="EL096.*init"),
    ):
        train(tmp_path, texts, resume=True, training={**SMALL["training"], "seed": 5})
    assert "it is of another run: text.seed was 0, now 5" in caplog.text
    # What does not change the run may change: longer, and with another rate.
    longer = {**SMALL["training"], "max_steps": 14, "learn_rate": 0.1}
    assert train(tmp_path, texts, resume=True, training=longer).step == 14


def test_gradients_that_are_no_numbers_are_left_out_and_end_a_run(tmp_path, texts, caplog):
    training = {**SMALL["training"], "learn_rate": 1e30, "warmup_steps": 0, "clip": 0.0}
    with caplog.at_level(logging.WARNING), pytest.raises(ValueError, match="EL093.*--resume"):
        train(tmp_path, texts, training={**training, "max_steps": 50})
    assert caplog.text.count("[WL005]") == 10


def test_counting_says_what_it_forgot(tmp_path, texts, monkeypatch, caplog):
    monkeypatch.setattr("spacy_elmo.pretraining.words.WordCounter.__init__.__defaults__", (4,))
    with caplog.at_level(logging.WARNING):
        train(tmp_path, texts, training={**SMALL["training"], "max_steps": 1})
    assert "[WL006]" in caplog.text


def test_debug_corpus_describes_the_text(tmp_path, texts):
    config = RunConfig.check(load_config(write_config(tmp_path, texts)))

    figures = describe_corpus(config, tmp_path)

    assert figures["tokens"] == 8 * 210
    assert figures["files"] == 2 and figures["distinct words"] == 11
    assert figures["tokens in the vocabulary"] == 1.0
    assert figures["tokens longer than 12 bytes"] == 0.0
    assert figures["tokens per second here"] > 0


@given(st.lists(st.integers(1, 40), min_size=1), st.sampled_from([0.1, 0.5, 0.9, 1.0]))
def test_quantiles_of_counted_values(values, share):
    expected = np.quantile(values, share, method="inverted_cdf")
    assert find_quantile(Counter(values), share) == expected


def test_debug_corpus_with_a_teacher(tmp_path, texts):
    nlp = spacy.blank("en")
    nlp.vocab.set_vector("ham", np.ones(3, dtype="float32"))
    nlp.vocab.set_vector("eggs", np.zeros(3, dtype="float32"))
    nlp.to_disk(tmp_path / "vectors")
    teachers = {"words": {"kind": "static_vectors", "path": str(tmp_path / "vectors")}}
    training = {**SMALL["training"], "teachers": teachers}
    config = RunConfig.check(load_config(write_config(tmp_path, texts, training=training)))

    assert describe_corpus(config, tmp_path)["tokens per second here"] > 0


@pytest.mark.parametrize("preset", PRETRAINING_PRESETS)
def test_presets_are_valid_and_train_a_step(tmp_path, texts, preset):
    config = make_pretraining_config(preset)
    config["paths"].update({"train": str(texts / "train"), "dev": str(texts / "dev")})
    config["training"].update({"max_steps": 1, "batch_tokens": 70})
    config.to_disk(tmp_path / "x.cfg", interpolate=False)
    loaded = load_config(tmp_path / "x.cfg")
    sizes = {"kim_5m": 5e6, "kim_19m": 19e6}
    if preset in sizes:
        # Kim et al. 2016 count one direction, with a vocabulary of 10,000 words.
        with torch.device("meta"):
            from spacy_elmo.bilm.model import BiLM

            bilm = BiLM(make_shape(loaded["bilm"], n_words=3))
            backward = sum(p.numel() for p in bilm.backward_lstm.parameters())
            n = sum(p.numel() for p in bilm.parameters()) - backward
        n += 10_000 * (bilm.config.direction_width + 1)
        assert n == pytest.approx(sizes[preset], rel=0.1)

    assert pretrain(loaded, tmp_path / "run").step == 1


def test_vocabularies_to_score_with_must_be_covered(tmp_path, texts):
    train(tmp_path, texts)
    folder = tmp_path / "run" / "model-last"
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nham\nzebra\n")
    with pytest.raises(ValueError, match="EL075.*zebra"):
        evaluate_checkpoint(folder, str(texts / "dev"), vocab=tmp_path / "vocab.txt")
    (folder / "softmax.safetensors").unlink()
    with pytest.raises(ValueError, match="EL074"):
        evaluate_checkpoint(folder, str(texts / "dev"))


def test_a_run_knows_its_length(tmp_path, texts):
    training = {**SMALL["training"], "max_steps": 0, "max_epochs": 2.0}
    config = RunConfig.check(load_config(write_config(tmp_path, texts, training=training)))
    run = prepare(
        config, tmp_path / "run", resume=False, processes=Processes(0, 1, torch.device("cpu"))
    )

    n_targets = run.counts["n_tokens"] + run.counts["n_sequences"]
    assert run.total_steps == -(-2 * n_targets // 80)


def test_words_are_counted_again_for_another_text(tmp_path, texts):
    config = RunConfig.check(load_config(write_config(tmp_path, texts)))
    processes = Processes(0, 1, torch.device("cpu"))
    first = prepare(config, tmp_path / "run", resume=False, processes=processes)
    corpus = {**SMALL["corpus"], "size": 6}
    config = RunConfig.check(load_config(write_config(tmp_path, texts, corpus=corpus)))

    assert len(prepare(config, tmp_path / "run", resume=False, processes=processes).vocabulary) == 6
    assert len(first.vocabulary) > 6


def test_text_is_counted_only_where_something_follows_from_it(tmp_path, texts, monkeypatch):
    train(tmp_path, texts, output="counted")
    corpus = {**SMALL["corpus"], "vocabulary": str(tmp_path / "counted" / "vocab.txt")}
    with monkeypatch.context() as patch:
        patch.setattr("spacy_elmo.pretraining.words.count_words", None)
        assert train(tmp_path, texts, corpus=corpus).step == 12

    # Counted once the length has to follow from it; the words stay.
    longer = {**SMALL["training"], "max_steps": 0, "max_epochs": 1.0}
    progress = train(tmp_path, texts, resume=True, corpus=corpus, training=longer)
    counts = srsly.read_json(tmp_path / "run" / "counts.json")
    assert progress.step == -(-(counts["n_tokens"] + counts["n_sequences"]) // 80)
    kept = [(tmp_path / name / "vocab.txt").read_text() for name in ("counted", "run")]
    assert kept[0] == kept[1]


def test_a_given_vocabulary_is_read_again_until_training_has_begun(tmp_path, texts):
    words = tmp_path / "words.txt"
    corpus = {**SMALL["corpus"], "vocabulary": str(words)}
    config = RunConfig.check(load_config(write_config(tmp_path, texts, corpus=corpus)))
    processes = Processes(0, 1, torch.device("cpu"))
    for n_words in (4, 5):
        words.write_text("\n".join(["<S>", "</S>", "<UNK>", "ham", "eggs"][:n_words]))
        run = prepare(config, tmp_path / "run", resume=False, processes=processes)
        assert len(run.vocabulary) == n_words


def test_a_signal_before_the_first_step_ends_at_once(tmp_path, texts):
    config = write_config(tmp_path, texts)
    # A pipe that nobody writes to: the command waits for its text.
    arguments = command(config, tmp_path / "run", "--paths.train", "-")
    with subprocess.Popen(
        [str(a) for a in arguments], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        while not list((tmp_path / "run").glob("*")):
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 128 + signal.SIGTERM
        assert b"[WL010]" in process.stderr.read()


def test_a_folder_without_a_whole_checkpoint_is_started_anew(tmp_path, texts):
    (tmp_path / "run" / "checkpoints" / ".step-000000002.partial").mkdir(parents=True)

    assert train(tmp_path, texts, resume=True).step == 12


def test_a_list_of_words_is_what_it_holds(tmp_path, texts):
    words = tmp_path / "include.txt"
    words.write_bytes("\ufeffzebra\r\n\r\nokapi\r\n".encode())
    corpus = {**SMALL["corpus"], "include": str(words)}
    config = RunConfig.check(load_config(write_config(tmp_path, texts, corpus=corpus)))
    prepare(config, tmp_path / "run", resume=False, processes=Processes(0, 1, torch.device("cpu")))
    assert {"zebra", "okapi"} < {*read_words(tmp_path / "run" / "vocab.txt")}

    # Another one, before training has begun.
    words.write_text("giraffe\n")
    train(tmp_path, texts, stop_at=5, corpus=corpus)
    found = {*read_words(tmp_path / "run" / "vocab.txt")}
    assert "giraffe" in found and not found & {"", "zebra", "\ufeffzebra"}

    moved = words.rename(tmp_path / "moved.txt")
    corpus["include"] = str(moved)
    assert train(tmp_path, texts, resume=True, corpus=corpus).step == 12
    moved.write_text("okapi\n")
    with pytest.raises(ValueError, match="EL096"):
        train(tmp_path, texts, resume=True, corpus=corpus)


def test_the_runs_own_files_are_no_text(tmp_path, texts, caplog):
    own = tmp_path / "texts"
    shutil.copytree(texts, own)
    train(own, own, "train/run", stop_at=5)
    assert train(own, own, "train/run", resume=True).step == 12
    assert not [r for r in caplog.messages if "WL012" in r]
    with pytest.raises(ValueError, match="EL080"):
        train(own, own, "train")


def test_a_run_may_move_and_go_on_in_other_pieces(tmp_path, texts):
    training = {**SMALL["training"], "state_steps": 5, "dropout": 0.0, "softmax": {"kind": "full"}}
    train(tmp_path, texts, "straight", training=training)
    train(tmp_path, texts, stop_at=4, training=training)
    shutil.copytree(texts, tmp_path / "moved")
    train(tmp_path, tmp_path / "moved", resume=True, training={**training, "accumulate": 3})

    one, two = (load_embedder(tmp_path / n / "model-last") for n in ("straight", "run"))
    for (name, a), (_, b) in zip(one.bilm.state_dict().items(), two.bilm.state_dict().items()):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-3, msg=name)


def test_evaluate_cuts_words_as_the_run_did(tmp_path, texts):
    (tmp_path / "zh.txt").write_text("我喜欢吃火腿 . 你喜欢吃鸡蛋 !\n" * 20, encoding="utf-8")
    paths = {"train": str(tmp_path / "zh.txt"), "dev": str(tmp_path / "zh.txt")}
    nlp, reports = {"lang": "zh", "tokenizer": None}, []
    train(tmp_path, texts, reports=reports, nlp=nlp, paths=paths)

    result = evaluate_checkpoint(tmp_path / "run" / "model-last", paths["dev"])

    assert result["forward"] == pytest.approx(reports[-1].dev.perplexities[0], rel=1e-3)


def test_evaluate_measures_as_the_run_did(tmp_path, texts):
    reports = []
    corpus = {**SMALL["corpus"], "cut": "lines", "max_tokens": 5}
    for name, state_steps in (("zero", 0), ("carried", 4)):
        training = {**SMALL["training"], "state_steps": state_steps, "eval_sequences": 7}
        train(tmp_path, texts, name, reports=reports, corpus=corpus, training=training)

        result = evaluate_checkpoint(tmp_path / name / "model-last", str(texts / "dev"))
        assert (result["cut"], result["max_tokens"], result["state"]) == ("lines", 5, name)
        assert result["n_sequences"] == 7 < result["n_sequences_of_text"]
        assert result["forward"] == pytest.approx(reports[-1].dev.perplexities[0], rel=1e-3)


@pytest.mark.gpu
def test_half_precision_trains_on_a_gpu(tmp_path, texts):
    for i, precision in enumerate(("fp32", "bf16", "fp16")):
        path = write_config(tmp_path, texts, training={**SMALL["training"], "precision": precision})
        progress = pretrain(load_config(path), tmp_path / f"run{i}", device="cuda")
        assert progress.step == 12 and progress.best < 60


def test_text_comes_through_a_pipe(tmp_path, texts, monkeypatch):
    data = (texts / "train" / "a.txt").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    train(tmp_path, texts, paths={"train": "-"}, training={**SMALL["training"], "max_steps": 4})

    # The second time what was saved is gone on with, whatever comes.
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"other text")))
    longer = {**SMALL["training"], "max_steps": 6}
    assert train(tmp_path, texts, resume=True, paths={"train": "-"}, training=longer).step == 6
    assert (tmp_path / "run" / "stdin.txt").read_bytes() == data


def test_a_stream_is_measured_without_gaps(tmp_path, texts):
    training = {**SMALL["training"], "state_steps": 4, "max_steps": 2}
    train(tmp_path, texts, corpus={**SMALL["corpus"], "cut": "lines"}, training=training)
    lines = (texts / "dev" / "c.txt").read_text().splitlines()
    (tmp_path / "first.txt").write_text("\n".join(lines[:7]))

    folder = tmp_path / "run" / "model-last"
    seven = evaluate_checkpoint(folder, str(texts / "dev"), limit=7)
    first = evaluate_checkpoint(folder, str(tmp_path / "first.txt"), limit=0)

    assert seven["state"] == first["state"] == "carried"
    assert seven["forward"] == pytest.approx(first["forward"])
    assert seven["backward"] == pytest.approx(first["backward"])
    assert (seven["n_sequences_of_text"], first["n_sequences_of_text"]) == (20, 7)


def test_a_resumed_run_knows_what_its_weights_had_read(tmp_path, texts):
    train(tmp_path, texts, "first")
    paths = {"init": str(tmp_path / "first" / "model-last")}
    train(tmp_path, texts, stop_at=4, paths=paths)
    shutil.rmtree(tmp_path / "first")  # needed no more
    train(tmp_path, texts, resume=True, paths=paths)

    meta = srsly.read_json(tmp_path / "run" / "model-last" / "meta.json")
    assert meta["n_tokens_trained_before"] == meta["n_tokens_trained"] > 0


def test_another_held_out_text_has_a_best_of_its_own(tmp_path, texts, caplog):
    train(tmp_path, texts, stop_at=8)
    (tmp_path / "other.txt").write_text("ham eggs ham bread like like eggs .\n" * 9)
    other = {"train": str(texts / "train"), "dev": str(tmp_path / "other.txt")}
    caplog.clear()
    progress = train(tmp_path, texts, resume=True, paths=other)

    assert "WL062" in caplog.text and "other.txt" in caplog.text
    meta = srsly.read_json(tmp_path / "run" / "model-best" / "meta.json")
    assert meta["dev_perplexity"]["n_sequences"] == 9 and progress.best_step > 8
    longer = {**SMALL["training"], "max_steps": 16}
    caplog.clear()
    train(tmp_path, texts, resume=True, paths=other, training=longer)
    assert "WL062" not in caplog.text


def test_the_best_is_kept_while_nothing_is_held_out(tmp_path, texts, caplog):
    train(tmp_path, texts, stop_at=6)
    best = tmp_path / "run" / "model-best" / "meta.json"
    before = srsly.read_json(best)
    none = {"train": str(texts / "train"), "dev": None}
    train(tmp_path, texts, resume=True, stop_at=8, paths=none)
    assert "WL062" not in caplog.text

    wild = {**SMALL["training"], "learn_rate": 5.0}
    train(tmp_path, texts, resume=True, training=wild)

    assert srsly.read_json(best) == before


def test_weights_of_another_shape_are_refused_before_words_are_counted(tmp_path, texts, caplog):
    caplog.set_level("INFO", "spacy_elmo")
    train(tmp_path, texts, "first")
    config = write_config(
        tmp_path,
        texts,
        paths={"train": str(texts / "train"), "init": str(tmp_path / "first" / "model-last")},
        bilm={**SHAPE, "width": 16},
    )
    caplog.clear()
    with pytest.raises(ValueError, match="EL097.*width: 16, 8"):
        pretrain(load_config(config), tmp_path / "second")
    with pytest.raises(ValueError, match="EL097.*width: 16, 8"):
        describe_corpus(RunConfig.check(load_config(config)), tmp_path)
    assert "count its words" not in caplog.text


def test_a_softmax_that_no_vocabulary_of_that_size_fits_is_refused_at_once(tmp_path, texts):
    training = {**SMALL["training"], "softmax": {"kind": "adaptive", "cutoffs": [40]}}
    for size, known in ((40, False), (0, True)):
        corpus = {**SMALL["corpus"], "size": size}
        config = load_config(write_config(tmp_path, texts, corpus=corpus, training=training))
        if known:
            RunConfig.check(config)
            continue
        with pytest.raises(ValueError, match="EL072"):
            RunConfig.check(config)


def test_a_torn_line_of_the_log_is_left_out(tmp_path, texts):
    path = tmp_path / LOG_FILE
    one, two, three = ({"step": i, "n_tokens": i, "learn_rate": 0.1} for i in (1, 2, 3))
    lines = [one, two, three, {**two, "again": 1}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"st')
    log = RunLog(tmp_path)
    assert read_log(tmp_path) == [one, {**two, "again": 1}]
    reports = []
    train(tmp_path, texts, reports=reports)

    log(reports[0], 12)

    assert [line["step"] for line in read_log(tmp_path)] == [1, 2, reports[0].step]
