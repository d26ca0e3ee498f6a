"""A run that is killed or interrupted resumes to the same bits."""

import re
import resource
import shutil
import subprocess
import sys

import pytest

from spacy_elmo.files import check_digests
from spacy_elmo.pretraining.config import load_config
from spacy_elmo.pretraining.log import RunLog
from spacy_elmo.pretraining.prepare import BEST, LAST
from spacy_elmo.pretraining.run import pretrain

from ..support.helpers import ROOT
from ..support.runs import read_state, train, write_config


@pytest.fixture(scope="module")
def stopped(texts, tmp_path_factory):
    """Folder with a config and a stopped run: two checkpoints, two models, a log."""
    folder = tmp_path_factory.mktemp("stopped")
    config = load_config(write_config(folder, texts))
    steps = iter(range(100))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spacy_elmo.pretraining.log.has_matplotlib", lambda: False)
        log = RunLog(folder / "run")
        pretrain(config, folder / "run", on_report=log, should_stop=lambda: next(steps) == 4)
    return folder


@pytest.fixture(scope="module")
def expected(stopped, tmp_path_factory):
    """State of the same run at its end."""
    run = tmp_path_factory.mktemp("straight") / "run"
    shutil.copytree(stopped / "run", run)
    pretrain(load_config(stopped / "pretrain.cfg"), run, resume=True)
    return read_state(run)


@pytest.mark.parametrize("name", ["training.safetensors", "model.safetensors", "vocab.txt"])
def test_a_damaged_checkpoint_changes_no_run(stopped, expected, tmp_path, name, caplog):
    run = tmp_path / "run"
    shutil.copytree(stopped / "run", run)
    path = run / "checkpoints" / "step-000000005" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)

    pretrain(load_config(stopped / "pretrain.cfg"), run, resume=True)

    assert "[WL004]" in caplog.text
    assert read_state(run) == expected
    assert check_digests(run / LAST) and check_digests(run / BEST)


def test_a_run_killed_before_its_first_checkpoint_starts_again(stopped, texts, tmp_path):
    (tmp_path / "run").mkdir()
    shutil.copytree(stopped / "run" / BEST, tmp_path / "run" / BEST)
    with pytest.raises(ValueError, match="EL095.*--resume"):
        train(tmp_path, texts)

    assert train(tmp_path, texts, resume=True).step == 12


# Each process that trains is a fork of one that never did: torch's threads do not survive a fork.
KILLS = """
import shutil, sys
from pathlib import Path

import torch
import torch._dynamo  # noqa: F401
from spacy_elmo.files import check_digests
from spacy_elmo.pretraining.prepare import BEST, LAST
from tests.support import faults
from tests.support.runs import change, read_state, share_tokenizer, train, write_texts

folder, first, every = Path(sys.argv[1]), *map(int, sys.argv[2:4])
torch.set_num_threads(1)
share_tokenizer(setattr)
texts = write_texts(folder / "texts")
changes = change("training", max_steps=4, eval_frequency=2, save_frequency=2)

def run(name, resume=False):
    train(folder, texts, name, resume=resume, **changes)

def in_child(work):
    assert faults._run_child(work) == faults.FINISHED

in_child(lambda: run("straight"))
for n in faults.kill_at_each_write(lambda: run("killed"), first, every):
    output = folder / "killed"
    for model in (LAST, BEST):
        # A model is whole, or not there yet.
        assert not (output / model).exists() or check_digests(output / model), n
    in_child(lambda: run("killed", resume=True))
    assert read_state(output) == read_state(folder / "straight"), n
    assert not list(output.rglob("*.partial")), n
    shutil.rmtree(output)
print(n)
"""


@pytest.mark.parametrize(
    "first, every",
    [(45, 40), pytest.param(1, 9, marks=[pytest.mark.slow, pytest.mark.timeout(600)])],
)
def test_a_run_killed_at_a_write_resumes_to_the_same_bits(tmp_path, first, every):
    command = [sys.executable, "-c", KILLS, str(tmp_path), str(first), str(every)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]


@pytest.mark.slow
def test_a_full_disk_costs_only_time(stopped, expected, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(stopped / "run", run)
    command = [sys.executable, "-m", "spacy", "elmo", "pretrain", stopped / "pretrain.cfg", run]
    result = subprocess.run(
        [str(part) for part in (*command, "--resume")], capture_output=True, text=True,
        check=False,
        # Less than the largest file of a checkpoint.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (15_000, 15_000)),
    )  # fmt: skip

    assert result.returncode == 1
    assert re.search(r"\[EL\d{3}\]", result.stderr) and "Traceback" not in result.stderr
    pretrain(load_config(stopped / "pretrain.cfg"), run, resume=True)
    assert read_state(run) == expected
