"""Parts of a run: schedule, optimizer, settings, steps, checkpoints, log."""

import json
import logging
import math

import pytest
import srsly
import torch

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.formats import SoftmaxWeights
from spacy_elmo.language_model.objective import LanguageModel
from spacy_elmo.language_model.readings import make_lm_batch
from spacy_elmo.language_model.softmax import make_softmax
from spacy_elmo.language_model.vocabulary import SPECIAL_WORDS, Vocabulary
from spacy_elmo.pretraining.checkpoints import STATE_FILE, RunFolder
from spacy_elmo.pretraining.config import (
    SCHEDULES,
    TrainingSettings,
)
from spacy_elmo.pretraining.log import LOG_FILE, read_log
from spacy_elmo.pretraining.processes import Processes
from spacy_elmo.pretraining.stream import Step
from spacy_elmo.pretraining.trainer import (
    Trainer,
)

from ..support.helpers import SHAPE

VOCABULARY = Vocabulary([*SPECIAL_WORDS, "ham", "eggs"])


def factors(schedule, share=0.2):
    settings = TrainingSettings(schedule=schedule, warmup_steps=10, decay_share=share)
    return [settings.learn_rate_factor(step, 100) for step in range(100)]


def test_learning_rates_rise_then_fall():
    for schedule in SCHEDULES:
        found = factors(schedule)
        assert found[:10] == sorted(found[:10])
        assert found[9] < 1 and found[10] == pytest.approx(1, abs=0.01)
        assert found[10:] == sorted(found[10:], reverse=True)
        assert found[-1] == pytest.approx(0.0, abs=0.06)
    # A trapezoid is constant before it falls.
    assert factors("trapezoid")[10:80] == [1.0] * 70
    assert factors("trapezoid", share=0.0)[10:] == [1.0] * 90


def make_trainer(kind="full"):
    torch.manual_seed(0)
    bilm = BiLM(BiLMConfig(**SHAPE))
    settings = {"cutoffs": [4]} if kind == "adaptive" else {}
    softmax = make_softmax(kind, bilm.config.direction_width, len(VOCABULARY), **settings)
    model = LanguageModel(bilm, softmax)
    processes = Processes(0, 1, torch.device("cpu"))
    return Trainer(model, VOCABULARY, TrainingSettings(), processes)


def take_step(trainer, *sequences):
    """Do a step and return it with the names of the weights that it changed."""
    before = {name: weight.clone() for name, weight in trainer.model.named_parameters()}
    batches = [make_lm_batch(sequences, VOCABULARY)] if sequences else []
    result = trainer.step(Step(batches, 10, False, {}), 0, 0.1, None)
    after = trainer.model.named_parameters()
    return result, {n for n, w in after if not torch.equal(w.nan_to_num(), before[n].nan_to_num())}


@pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
def test_a_process_without_sequences_adds_nothing(kind):
    trainer = make_trainer(kind)
    with torch.no_grad():
        trainer.model.bilm.char_cnn.embedding.weight.fill_(math.inf)

    (losses, norm, _), changed = take_step(trainer)

    assert (losses, norm, changed) == ([0.0], 0.0, set())


def test_a_process_with_sequences_changes_every_weight():
    trainer = make_trainer()

    (losses, norm, _), changed = take_step(trainer, ["ham", "eggs"], ["eggs"])

    assert losses[0] > 0 and norm > 0
    assert changed == {name for name, _ in trainer.model.named_parameters()}


def test_a_step_without_a_finite_gradient_changes_nothing():
    trainer = make_trainer()
    with torch.no_grad():
        trainer.model.bilm.char_cnn.embedding.weight[6] = math.nan

    (_, norm, state), changed = take_step(trainer, ["ham", "\x06"])

    assert not math.isfinite(norm) and state is None and not changed


@pytest.fixture
def run(tmp_path):
    return RunFolder(tmp_path / "run", {"bilm": {"width": 8}, "training": {"eps": 1e-13}})


def save(run, step, **state):
    bilm = BiLM(BiLMConfig(**SHAPE))
    softmax = SoftmaxWeights("full", {}, {"weight": torch.ones(3, 4)}, ["<S>", "</S>", "<UNK>"])
    return run.save(bilm, softmax, {"step": step, **state}, {"0.x": torch.full((2,), step)}, {})


def test_the_last_two_checkpoints_are_kept(run):
    folders = [save(run, step, best=0.1 + 0.2) for step in (5, 10, 15)]

    assert [folder.exists() for folder in folders] == [False, True, True]
    last = run.find_last()
    assert (last.folder, last.state) == (folders[2], {"step": 15, "best": 0.1 + 0.2})
    assert last.tensors["0.x"].tolist() == [15, 15]


@pytest.mark.parametrize(
    "name", ["model.safetensors", "training.safetensors", STATE_FILE, "vocab.txt", "digests.json"]
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
    # The run resumes from the first, and comes to the same step again.
    save(run, 7)
    assert not second.exists()
    assert run.find_last().folder.name == "step-000000007" and first.exists()


def test_a_checkpoint_of_another_run_is_passed_over(run, caplog):
    save(run, 5)
    other = RunFolder(run.path, {"bilm": {"width": 8}, "training": {"eps": 1e-12}})
    # A former version wrote these, too.
    former = {**run.identity, "n_words": 14, "rows": "", "train_part": ""}

    assert other.find_last() is None
    assert "training.eps was 1e-13, now 1e-12" in caplog.text
    run.identity = former
    save(run, 6)
    run.identity = {**former, "train_part": "lstms"}
    save(run, 7)
    run.identity = {"bilm": {"width": 8}, "training": {"eps": 1e-13}}
    assert run.find_last().state["step"] == 6
    assert "train_part was 'lstms', now None" in caplog.text
    files = [["a.txt", 14], ["b.txt", 15]]
    run.identity = {"text": {"files": files[:1]}}
    save(run, 8)
    run.identity = {"text": {"files": files}}
    assert run.find_last() is None
    assert "text.files was [], now [['b.txt', 15]]" in caplog.text


def test_the_log_has_each_step_once_and_no_half_lines(tmp_path):
    lines = [
        {"step": step, "n_tokens": 10 * step, "learn_rate": 0.1, "train_loss": loss}
        for step, loss in ((1, 9), (2, 8), (3, 7), (2, 6))
    ]
    srsly.write_jsonl(tmp_path / LOG_FILE, lines)
    with (tmp_path / LOG_FILE).open("a") as file:
        file.write(json.dumps(lines[2])[:20])

    assert [line["train_loss"] for line in read_log(tmp_path)] == [9, 6]
