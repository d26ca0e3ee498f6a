"""Pretraining from a config: learning, resuming, starting from weights, several processes."""

import io
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
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.formats import CheckpointFiles, find_reader, read_words
from spacy_elmo.language_model.evaluation import evaluate_checkpoint
from spacy_elmo.pretraining.config import (
    PRETRAINING_PRESETS,
    RunConfig,
    load_config,
    make_pretraining_config,
    make_shape,
)
from spacy_elmo.pretraining.corpus_report import describe_corpus, find_quantile
from spacy_elmo.pretraining.prepare import prepare
from spacy_elmo.pretraining.processes import Processes
from spacy_elmo.pretraining.run import pretrain

from ..support.helpers import SHAPE, assert_close
from ..support.runs import change, read_state, train, write_config
from ..support.toy import make_options, make_weights, write_model

ALONE = Processes(0, 1, torch.device("cpu"))
# Such a low rate leaves weights as they are.
TINY_RATE = {"max_steps": 2, "learn_rate": 1e-9}


def get_words(folder):
    return read_words(folder / "vocab.txt")


def test_a_run_learns_and_its_result_can_be_used(tmp_path, texts):
    reports = []
    frequencies = {"eval_frequency": 30, "save_frequency": 60}
    changes = change("training", max_steps=120, learn_rate=0.02, **frequencies)
    train(tmp_path, texts, reports=reports, **changes)

    scores = [report.dev.perplexities[2] for report in reports if report.dev]
    # The noun after "I like" cannot be predicted better than chance.
    assert 2 < scores[-1] < 0.5 * scores[0]
    folder = tmp_path / "run" / "model-best"
    result = evaluate_checkpoint(folder, str(texts / "dev"))
    assert result["geometric_mean"] == pytest.approx(min(scores), rel=1e-3)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config=pipe_config(folder))
    nlp.get_pipe("elmo").load(folder)
    assert nlp("I like eggs").tensor.shape == (3, 8)
    assert srsly.read_json(folder / "meta.json")["dev_perplexity"]["kind"] == "exact"


@pytest.mark.parametrize("state_steps", [0, 5])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path, texts, state_steps, accumulate):
    changes = change("training", state_steps=state_steps, accumulate=accumulate)
    train(tmp_path, texts, "straight", **changes)
    for stop_at in (5, 3, 0):
        train(tmp_path, texts, "stopped", resume=True, stop_at=stop_at, **changes)

    assert read_state(tmp_path / "stopped") == read_state(tmp_path / "straight")


def make_command(config, output, *arguments, n_processes=1, max_restarts=0):
    launch = ["-m"]
    if n_processes > 1:
        launch = ["-m", "torch.distributed.run", "--standalone"]
        launch += ["--nproc-per-node", str(n_processes), "--max-restarts", str(max_restarts), "-m"]
    command = [sys.executable, *launch, "spacy", "elmo", "pretrain", config, output, *arguments]
    return [str(part) for part in command]


def start(*arguments, **settings):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = make_command(*arguments, **settings)
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)


def run(*arguments, **settings):
    with start(*arguments, **settings) as process:
        printed = process.communicate()[1]
    assert process.returncode == 0, printed[-2000:]
    return printed


def wait_for_checkpoint(process, output):
    while process.poll() is None and not list(output.glob("checkpoints/step-?????????")):
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0, 1])
def test_killed_at_a_random_moment_and_resumed(tmp_path, texts, moment):
    changes = change("training", max_steps=60, eval_frequency=30)
    config = write_config(tmp_path, texts, **changes)
    with start(config, tmp_path / "killed") as process:
        wait_for_checkpoint(process, tmp_path / "killed")
        time.sleep(random.Random(moment).random() * 0.4)
        process.kill()

    run(config, tmp_path / "killed", "--resume")
    train(tmp_path, texts, "straight", **changes)

    assert read_state(tmp_path / "killed") == read_state(tmp_path / "straight")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGTERM")
def test_sigterm_and_max_minutes_end_with_a_checkpoint(tmp_path, texts):
    config = write_config(
        tmp_path, texts, **change("training", max_steps=10_000, eval_frequency=10_000)
    )
    with start(config, tmp_path / "a") as process:
        wait_for_checkpoint(process, tmp_path / "a")
        process.send_signal(signal.SIGTERM)
        printed = process.communicate(timeout=60)[1]

    assert process.returncode == 0
    step = read_state(tmp_path / "a")[1]["step"]
    assert f"Step {step}" in printed and (tmp_path / "a" / "model-last").exists()
    assert "Step 1 of" in run(config, tmp_path / "b", "--max-minutes", "0.00001")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("batch_tokens", [80, 9])  # with 9, some steps have one sequence
def test_two_processes_are_one(tmp_path, texts, batch_tokens):
    exact = {"dropout": 0.0, "softmax": {"kind": "full"}, "max_steps": 8}
    changes = change("training", batch_tokens=batch_tokens, **exact)
    config = write_config(tmp_path, texts, **changes)
    train(tmp_path, texts, "one", **changes)
    run(config, tmp_path / "two", "--max-minutes", "0.00001", n_processes=2)
    # The first two stopped after a step.
    run(config, tmp_path / "two", "--resume", n_processes=2)

    one, two = (load_embedder(tmp_path / name / "model-last") for name in ("one", "two"))
    for (name, a), (_, b) in zip(one.bilm.state_dict().items(), two.bilm.state_dict().items()):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-3, msg=name)
    states = [read_state(tmp_path / name)[1] for name in ("one", "two")]
    assert states[0]["position"] == states[1]["position"]
    assert states[0]["best"] == pytest.approx(states[1]["best"], rel=1e-4)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.timeout(300)
def test_torchrun_resumes_when_a_process_was_killed(tmp_path, texts):
    changes = change("training", max_steps=60, eval_frequency=30)
    config = write_config(tmp_path, texts, **changes)
    with start(config, tmp_path / "two", n_processes=2, max_restarts=1) as process:
        wait_for_checkpoint(process, tmp_path / "two")
        workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(workers[-1]), signal.SIGKILL)
        log = process.communicate()[1]

    assert process.returncode == 0, log[-2000:]
    assert log.count("Started from") == 1  # printed by the first process alone
    assert read_state(tmp_path / "two")[1]["step"] == 60


@pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
def test_every_softmax_trains_and_is_scored_exactly(tmp_path, texts, kind):
    settings = {"full": {}, "sampled": {"n_samples": 10}, "adaptive": {"cutoffs": [5]}}
    softmax = {"kind": kind, **settings[kind]}
    reports = []
    train(tmp_path, texts, reports=reports, **change("training", softmax=softmax))

    result = evaluate_checkpoint(tmp_path / "run" / "model-last", str(texts / "dev"))
    assert result["geometric_mean"] == pytest.approx(reports[-1].dev.perplexities[2], rel=1e-3)


@pytest.mark.parametrize("input", ["characters", "words", "vectors"])
def test_every_input_trains_and_is_used_in_a_pipeline(tmp_path, texts, input):
    nlp = spacy.blank("en")
    for i, word in enumerate(("ham", "eggs", "like")):
        nlp.vocab.set_vector(word, np.eye(5, dtype="float32")[i])
    nlp.to_disk(tmp_path / "vectors")
    paths = {"train": str(texts / "train"), "vectors": str(tmp_path / "vectors")}
    changes = {"bilm": {**SHAPE, "input": input}, "paths": paths}
    train(tmp_path, texts, stop_at=3, **changes)
    train(tmp_path, texts, resume=True, **changes)

    folder = tmp_path / "run" / "model-last"
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config=pipe_config(folder))
    nlp.get_pipe("elmo").load(folder)
    doc = nlp("I like ham and tofu")
    nlp.to_disk(tmp_path / "nlp")
    assert_close([spacy.load(tmp_path / "nlp")(doc.text).tensor], [doc.tensor])
    unknown, other = nlp("tofu").tensor, nlp("seitan").tensor
    assert np.allclose(unknown, other, atol=1e-6) == (input != "characters")


def read_rows(folder):
    """Rows of a softmax by word."""
    files = CheckpointFiles.of(folder)
    stored = find_reader(files).read_softmax(files)
    return dict(zip(stored.words, stored.state["weight"]))


def test_a_run_can_start_from_weights_alone(tmp_path, texts):
    train(tmp_path, texts, "first")
    first, second = (tmp_path / name / "model-last" for name in ("first", "second"))
    changes = {
        "paths": {"init": str(first)},
        **change("training", **TINY_RATE),
        **change("corpus", size=10),
    }

    train(tmp_path, texts, "second", **changes)

    sentences = [["I", "like", "eggs"]]
    assert_close(load_embedder(second).embed(sentences), load_embedder(first).embed(sentences))
    rows, before = read_rows(second), read_rows(first)
    assert len(rows) == 10 < len(before)
    for word, row in rows.items():
        torch.testing.assert_close(row, before[word])
    meta = srsly.read_json(second / "meta.json")
    assert meta["n_tokens_trained_before"] == 960 and meta["n_tokens_trained"] < 200
    # The weights are not needed to resume.
    shutil.rmtree(tmp_path / "first")
    train(tmp_path, texts, "second", resume=True, **{**changes, **change("training", max_steps=3)})
    assert srsly.read_json(second / "meta.json")["n_tokens_trained_before"] == 960


def test_a_word_table_can_start_from_another_vocabulary(tmp_path, texts):
    bilm = {**SHAPE, "input": "words"}
    train(tmp_path, texts, "first", bilm=bilm)
    first, second = (tmp_path / name / "model-last" for name in ("first", "second"))
    train(
        tmp_path, texts, "second", bilm=bilm, paths={"init": str(first)},
        **change("training", **TINY_RATE), **change("corpus", size=7),
    )  # fmt: skip

    ours, theirs = load_embedder(second), load_embedder(first)
    kept = get_words(tmp_path / "second")[3:]
    assert ours.bilm.config.n_words == len(kept) == 4 < theirs.bilm.config.n_words
    assert_close(ours.embed([kept]), theirs.embed([kept]))


def test_a_run_can_start_from_published_weights(tmp_path, texts):
    options = make_options()
    pair = write_model(tmp_path / "published", options, make_weights(options))
    shape = load_embedder(tmp_path / "published").bilm.config.to_dict()
    paths = dict(zip(("init", "init_weights"), map(str, pair)))

    train(tmp_path, texts, paths=paths, bilm=shape, **change("training", **TINY_RATE))

    sentences = [["I", "like", "eggs"]]
    assert_close(
        load_embedder(tmp_path / "run" / "model-last").embed(sentences),
        load_embedder(tmp_path / "published").embed(sentences),
    )


def test_weights_of_another_shape_are_refused_before_words_are_counted(tmp_path, texts, caplog):
    train(tmp_path, texts, "first", stop_at=1)
    paths = {"train": str(texts / "train"), "init": str(tmp_path / "first" / "model-last")}
    config = load_config(write_config(tmp_path, texts, paths=paths, bilm={**SHAPE, "width": 16}))
    caplog.set_level("INFO", "spacy_elmo")
    caplog.clear()
    with pytest.raises(ValueError, match="EL097.*width: 16, 8"):
        pretrain(config, tmp_path / "second")
    with pytest.raises(ValueError, match="EL097.*width: 16, 8"):
        describe_corpus(RunConfig.check(config), tmp_path)
    assert "count its words" not in caplog.text


def test_early_stop(tmp_path, texts):
    def resume(patience, is_resumed=True):
        changes = change("training", learn_rate=0.0, patience=patience, max_steps=100)
        return train(tmp_path, texts, resume=is_resumed, **changes).step

    assert resume(4, is_resumed=False) == 8
    # It has ended; with more patience it continues.
    assert resume(4) == 8
    assert resume(8) == 12


def test_torchrun_starts_again_from_the_last_checkpoint(tmp_path, texts, monkeypatch):
    train(tmp_path, texts, stop_at=4)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")

    assert train(tmp_path, texts).step == 12


def test_folders_with_a_run_are_not_started_again(tmp_path, texts, caplog):
    train(tmp_path, texts)
    with pytest.raises(ValueError, match="EL095.*--resume"):
        train(tmp_path, texts)
    with caplog.at_level(logging.WARNING), pytest.raises(ValueError, match="EL096.*init"):
        train(tmp_path, texts, resume=True, **change("training", seed=5))
    assert "it is of another run: text.seed was 0, now 5" in caplog.text
    # The length and the learning rate may change.
    longer = change("training", max_steps=14, learn_rate=0.1)
    assert train(tmp_path, texts, resume=True, **longer).step == 14


def test_a_folder_without_a_whole_checkpoint_is_started_again(tmp_path, texts):
    (tmp_path / "run" / "checkpoints" / ".step-000000002.partial").mkdir(parents=True)

    assert train(tmp_path, texts, resume=True).step == 12
    assert not list((tmp_path / "run" / "checkpoints").glob("*.partial"))


def test_gradients_that_are_not_finite_are_skipped_and_end_a_run(tmp_path, texts, caplog):
    wild = change("training", learn_rate=1e30, warmup_steps=0, clip=0.0, max_steps=50)
    with caplog.at_level(logging.WARNING), pytest.raises(ValueError, match="EL093.*--resume"):
        train(tmp_path, texts, **wild)
    assert caplog.text.count("[WL005]") == 10


def test_weights_that_are_not_finite_replace_no_checkpoint(tmp_path, texts):
    train(tmp_path, texts, stop_at=4)
    wild = change(
        "training", learn_rate=1e39, warmup_steps=0, save_frequency=1, clip=0.0, max_steps=8
    )
    with pytest.raises(ValueError, match="EL093.*step [56].*not finite.*--resume"):
        train(tmp_path, texts, resume=True, **wild)
    assert train(tmp_path, texts, resume=True).step == 12


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


@pytest.mark.parametrize("preset", PRETRAINING_PRESETS)
def test_presets_are_valid_and_as_large_as_their_names_say(tmp_path, preset):
    make_pretraining_config(preset).to_disk(tmp_path / "x.cfg", interpolate=False)
    config = RunConfig.check(load_config(tmp_path / "x.cfg", {"paths.train": "text"}))

    sizes = {"kim_5m": 5e6, "kim_19m": 19e6}
    if preset in sizes:
        # Kim et al. 2016 count one direction, with a vocabulary of 10,000 words.
        with torch.device("meta"):
            bilm = BiLM(make_shape(config.bilm, n_words=3))
        n_weights = sum(p.numel() for p in bilm.parameters())
        n_weights -= sum(p.numel() for p in bilm.backward_lstm.parameters())
        n_weights += 10_000 * (bilm.config.direction_width + 1)
        assert n_weights == pytest.approx(sizes[preset], rel=0.1)


def test_the_length_follows_from_the_text(tmp_path, texts):
    changes = change("training", max_steps=0, max_epochs=2.0)
    config = RunConfig.check(load_config(write_config(tmp_path, texts, **changes)))
    opened = prepare(config, tmp_path / "run", resume=False, processes=ALONE)

    n_targets = opened.counts["n_tokens"] + opened.counts["n_sequences"]
    assert opened.total_steps == -(-2 * n_targets // 80)


def test_words_are_counted_again_for_another_text(tmp_path, texts):
    def prepare_words(**changes):
        path = write_config(tmp_path, texts, **change("corpus", **changes))
        config = RunConfig.check(load_config(path))
        prepare(config, tmp_path / "run", resume=False, processes=ALONE)
        return {*get_words(tmp_path / "run")}

    words = tmp_path / "include.txt"
    words.write_bytes("\ufeffzebra\r\n\r\nokapi\r\n".encode())
    assert len(prepare_words()) == 14
    assert len(prepare_words(size=6)) == 6
    assert {"zebra", "okapi"} < prepare_words(include=str(words))
    words.write_text("<S>\n</S>\n<UNK>\ngiraffe\n")
    assert "giraffe" in prepare_words(vocabulary=str(words))

    # A run that has begun keeps its words.
    changes = change("corpus", vocabulary=str(words))
    train(tmp_path, texts, stop_at=5, **changes)
    changes["corpus"]["vocabulary"] = str(words.rename(tmp_path / "moved.txt"))
    assert train(tmp_path, texts, resume=True, **changes).step == 12
    (tmp_path / "moved.txt").write_text("<S>\n</S>\n<UNK>\nham\n")
    with pytest.raises(ValueError, match="EL096"):
        train(tmp_path, texts, resume=True, **changes)


def test_text_is_counted_only_where_something_follows_from_it(tmp_path, texts, monkeypatch):
    train(tmp_path, texts, "counted", stop_at=1)
    corpus = change("corpus", vocabulary=str(tmp_path / "counted" / "vocab.txt"))
    with monkeypatch.context() as patch:
        patch.setattr("spacy_elmo.pretraining.prepare.count_words", None)
        assert train(tmp_path, texts, **corpus).step == 12

    # Counted when the length has to follow from it; the words stay.
    longer = change("training", max_steps=0, max_epochs=1.0)
    progress = train(tmp_path, texts, resume=True, **corpus, **longer)
    counts = srsly.read_json(tmp_path / "run" / "counts.json")
    assert progress.step == -(-(counts["n_tokens"] + counts["n_sequences"]) // 80)
    assert get_words(tmp_path / "run") == get_words(tmp_path / "counted")


def test_a_runs_own_files_are_not_its_text(tmp_path, texts):
    own = tmp_path / "texts"
    shutil.copytree(texts, own)
    train(own, own, "train/run", stop_at=5)
    assert train(own, own, "train/run", resume=True).step == 12


def test_a_run_may_move_and_resume_in_other_pieces(tmp_path, texts):
    settings = {"state_steps": 5, "dropout": 0.0, "softmax": {"kind": "full"}}
    train(tmp_path, texts, "straight", **change("training", **settings))
    train(tmp_path, texts, stop_at=4, **change("training", **settings))
    shutil.copytree(texts, tmp_path / "moved")
    pieces = change("training", **settings, accumulate=3)
    train(tmp_path, tmp_path / "moved", resume=True, **pieces)

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


@pytest.mark.parametrize("state, state_steps", [("zero", 0), ("carried", 4)])
def test_evaluate_measures_as_the_run_did(tmp_path, texts, state, state_steps):
    reports = []
    train(
        tmp_path, texts, reports=reports, **change("corpus", cut="lines", max_tokens=5),
        **change("training", state_steps=state_steps, eval_sequences=7),
    )  # fmt: skip
    folder = tmp_path / "run" / "model-last"

    result = evaluate_checkpoint(folder, str(texts / "dev"))

    assert (result["cut"], result["max_tokens"], result["state"]) == ("lines", 5, state)
    assert result["n_sequences"] == 7 < result["n_sequences_of_text"]
    assert result["forward"] == pytest.approx(reports[-1].dev.perplexities[0], rel=1e-3)


def test_words_to_score_with_must_be_predicted(tmp_path, texts):
    train(tmp_path, texts, stop_at=1)
    folder = tmp_path / "run" / "model-last"
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nham\nzebra\n")
    with pytest.raises(ValueError, match="EL075.*zebra"):
        evaluate_checkpoint(folder, str(texts / "dev"), vocab=tmp_path / "vocab.txt")
    (folder / "softmax.safetensors").unlink()
    with pytest.raises(ValueError, match="EL074"):
        evaluate_checkpoint(folder, str(texts / "dev"))


@pytest.mark.gpu
def test_half_precision_trains_on_a_gpu(tmp_path, texts):
    for precision in ("fp32", "bf16", "fp16"):
        path = write_config(tmp_path, texts, **change("training", precision=precision))
        progress = pretrain(load_config(path), tmp_path / precision, device="cuda")
        assert progress.step == 12 and progress.best < 60


def test_text_comes_through_standard_input(tmp_path, texts, monkeypatch):
    data = (texts / "train" / "a.txt").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    train(tmp_path, texts, paths={"train": "-"}, stop_at=4)

    # A resumed run reads what was saved.
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"other text")))
    assert train(tmp_path, texts, resume=True, paths={"train": "-"}).step == 12
    assert (tmp_path / "run" / "stdin.txt").read_bytes() == data


def test_another_held_out_text_has_its_own_best(tmp_path, texts, caplog):
    train(tmp_path, texts, stop_at=8)
    (tmp_path / "other.txt").write_text("ham eggs ham bread like like eggs .\n" * 9)
    other = {"train": str(texts / "train"), "dev": str(tmp_path / "other.txt")}
    caplog.clear()
    progress = train(tmp_path, texts, resume=True, paths=other)

    assert "WL062" in caplog.text and "other.txt" in caplog.text
    meta = srsly.read_json(tmp_path / "run" / "model-best" / "meta.json")
    assert meta["dev_perplexity"]["n_sequences"] == 9 and progress.best_step > 8
