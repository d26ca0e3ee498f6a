"""Schedule, optimizers, settings, checkpoints of a run, its log."""

import json
import logging

import pytest
import srsly
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.formats import SoftmaxWeights
from spacy_elmo.pretraining.checkpoints import STATE_FILE, RunFolder
from spacy_elmo.pretraining.config import (
    SCHEDULES,
    CorpusSettings,
    TrainingSettings,
    learn_rate_factor,
    make_optimizer,
    make_settings,
)
from spacy_elmo.pretraining.log import LOG_FILE, read_log
from spacy_elmo.pretraining.trainer import (
    get_tensors,
    set_tensors,
)

from ..support.helpers import SHAPE


def factors(schedule, n=100, warmup=10, share=0.2):
    return [
        learn_rate_factor(
            step, schedule=schedule, warmup_steps=warmup, total_steps=n, decay_share=share
        )
        for step in range(n)
    ]


@given(st.sampled_from(SCHEDULES), st.integers(1, 300), st.integers(0, 400), st.floats(0, 1))
def test_rates_stay_between_nothing_and_the_highest(schedule, n, warmup, share):
    assert all(0 <= factor <= 1 for factor in factors(schedule, n, warmup, share))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_rates_rise_then_fall(schedule):
    found = factors(schedule)

    assert found[:10] == sorted(found[:10])
    assert found[9] < 1 and found[10] == pytest.approx(1, abs=0.01)
    assert found[10:] == sorted(found[10:], reverse=True)
    assert found[-1] == pytest.approx(0.0, abs=0.06)


def test_a_trapezoid_stays_before_it_falls():
    assert factors("trapezoid")[10:80] == [1.0] * 70
    assert factors("trapezoid", share=0.0)[10:] == [1.0] * 90


@pytest.mark.parametrize("arguments", [{}, {"amsgrad": True, "weight_decay": 0.01}])
def test_the_optimizer_resumes_from_its_tensors(arguments):
    def step(module, optimizer, i):
        torch.manual_seed(i)
        optimizer.param_groups[0]["lr"] = 0.1
        optimizer.zero_grad()
        module(torch.randn(5, 3)).square().sum().backward()
        optimizer.step()

    def make():
        torch.manual_seed(0)
        module = nn.Linear(3, 2)
        return module, make_optimizer(module, {"name": "adam", **arguments})

    module, optimizer = make()
    for i in range(3):
        step(module, optimizer, i)
    weights, tensors = module.state_dict(), get_tensors(optimizer)
    again, restored = make()
    again.load_state_dict(weights)
    set_tensors(restored, {key: value.clone() for key, value in tensors.items()})
    for i in range(3, 6):
        step(module, optimizer, i)
        step(again, restored, i)

    assert torch.equal(module.weight, again.weight)


def test_impossible_optimizers_are_refused():
    with pytest.raises(ValueError, match=r"EL091.*training.optimizer\] name = lion"):
        make_optimizer(nn.Linear(1, 1), {"name": "lion"})
    with pytest.raises(ValueError, match="EL092"):
        make_optimizer(nn.Linear(1, 1), {"name": "adam", "momentum": 1})


BAD_TRAINING = [
    ("batch_tokens", 0), ("schedule", "up"), ("precision", "int4"), ("dropout", 1.0),
    ("max_epochs", 0.0), ("clip", -1.0), ("seed", "a"), ("learn_rate", None),
]  # fmt: skip


@pytest.mark.parametrize("key, value", BAD_TRAINING)
def test_impossible_settings_are_refused(key, value):
    with pytest.raises(ValueError, match=rf"EL091.*training\] {key} = "):
        make_settings(TrainingSettings, {key: value}, "training")


@pytest.mark.parametrize(
    "changes", [{"max_tokens": 1}, {"window_share": 2.0}, {"cut": "bytes"}, {"train": None}]
)
def test_impossible_corpora_are_refused(changes):
    with pytest.raises(ValueError, match=r"EL091.*corpus\]"):
        make_settings(CorpusSettings, {"train": "x", **changes}, "corpus")


def test_unknown_keys_are_refused_and_whole_numbers_are_numbers():
    with pytest.raises(ValueError, match=r"EL090.*training\] has no 'learning_rate'"):
        make_settings(TrainingSettings, {"learning_rate": 1.0}, "training")
    assert make_settings(TrainingSettings, {"learn_rate": 1}, "training").learn_rate == 1.0


@pytest.fixture
def run(tmp_path):
    return RunFolder(tmp_path / "run", {"bilm": {"width": 8}, "n_words": 3})


def save(run, step, **state):
    bilm = BiLM(BiLMConfig(**SHAPE))
    softmax = SoftmaxWeights("full", {}, {"weight": torch.ones(3, 4)}, ["<S>", "</S>", "<UNK>"])
    return run.save(bilm, softmax, {"step": step, **state}, {"0.x": torch.full((2,), step)}, {})


def test_the_last_two_checkpoints_are_kept(run):
    folders = [save(run, step) for step in (5, 10, 15)]

    assert [folder.exists() for folder in folders] == [False, True, True]
    last = run.find_last()
    assert (last.folder, last.state) == (folders[2], {"step": 15})
    assert last.tensors["0.x"].tolist() == [15, 15]


def test_what_is_resumed_from_lets_its_file_go(run):
    save(run, 5)
    last = run.find_last()
    path = last.folder / "training.safetensors"
    # In place: views of the file would see it.
    with path.open("r+b") as file:
        file.write(bytes(path.stat().st_size))
    assert last.tensors["0.x"].tolist() == [5, 5]


@pytest.mark.parametrize(
    "name", ["model.safetensors", "training.safetensors", STATE_FILE, "vocab.txt"]
)
@pytest.mark.parametrize("damage", ["cut", "flipped", "missing"])
def test_a_damaged_checkpoint_is_passed_over(run, name, damage, caplog):
    first, second = save(run, 5), save(run, 10)
    path = second / name
    data = bytearray(path.read_bytes())
    if damage == "missing":
        path.unlink()
    else:
        data[len(data) // 2] ^= 1
        path.write_bytes(data[: len(data) // 2] if damage == "cut" else data)

    with caplog.at_level(logging.WARNING):
        assert run.find_last().folder == first
    assert "[WL004]" in caplog.text and second.name in caplog.text
    # The run comes to that step again.
    run.set_aside_after(first)
    again = save(run, 10)
    assert run.find_last().folder == again == second
    assert first.exists()


def test_a_checkpoint_of_another_run_is_passed_over(run, caplog):
    save(run, 5)
    other = RunFolder(run.path, {"bilm": {"width": 8}, "n_words": 4})

    assert other.find_last() is None
    assert "n_words was 3, now 4" in caplog.text


def test_small_numbers_make_two_runs_and_come_back_as_they_were(run, caplog):
    run.identity["training"] = {"eps": 1e-13}
    folder = save(run, 5, best=0.1 + 0.2)

    assert run.find_last().state["best"] == 0.1 + 0.2
    other = RunFolder(run.path, {"training": {"eps": 1e-12}})
    assert other.find_last() is None and "eps was 1e-13, now 1e-12" in caplog.text
    # Older versions kept ten decimals.
    about = json.loads((folder / STATE_FILE).read_text())
    about["identity"]["training"]["eps"], about["files"] = 0.0, {}
    (folder / STATE_FILE).write_text(json.dumps(about))
    (folder / "digests.json").unlink()
    assert run.find_last().folder == folder


def test_a_half_written_checkpoint_is_not_seen(run):
    save(run, 5)
    folder = save(run, 10)
    folder.rename(folder.with_name(f".{folder.name}.partial"))

    assert run.find_last().state["step"] == 5


def make_log_line(step, loss=1.0):
    return {"step": step, "n_tokens": 10 * step, "learn_rate": 0.1, "train_loss": loss}


def test_the_log_counts_steps_once(tmp_path):
    lines = [make_log_line(*pair) for pair in ((1, 9), (2, 8), (3, 7), (2, 6))]
    srsly.write_jsonl(tmp_path / LOG_FILE, lines)

    assert [line["train_loss"] for line in read_log(tmp_path)] == [9, 6]
    assert json.loads((tmp_path / LOG_FILE).read_text().splitlines()[0])["step"] == 1


def test_a_damaged_line_of_the_log_is_left_out(tmp_path):
    lines = [{**make_log_line(step), "dev_forward": 2.0} for step in (1, 2, 3)]
    for line in lines:
        line.update(dev_backward=2.0, dev_perplexity=2.0)
    content = bytearray("".join(json.dumps(line) + "\n" for line in lines).encode())
    second = len(json.dumps(lines[0])) + 1
    for bit in range(8 * second, 8 * (second + len(json.dumps(lines[1])))):
        content[bit // 8] ^= 1 << bit % 8
        (tmp_path / LOG_FILE).write_bytes(content)
        content[bit // 8] ^= 1 << bit % 8
        found = read_log(tmp_path)
        # A digit may be another one; what is left can be drawn.
        assert found[-1] == lines[2] or found[-1]["step"] > 3
        for line in found:
            assert all(
                type(line[key]) in (int, float) for key in ("step", "n_tokens", "learn_rate")
            )
            assert "dev_perplexity" not in line or {"dev_forward", "dev_backward"} < set(line)
