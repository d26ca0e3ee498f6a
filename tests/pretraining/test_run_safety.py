"""A run that is killed, or divided among processes, gives the same weights."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from spacy_elmo import load_embedder
from spacy_elmo.files import check_digests
from spacy_elmo.pretraining.prepare import BEST, LAST

from ..support.faults import FINISHED, kill_at_each_write, run_child
from ..support.runs import change, read_state, run_in_forks, train, write_config


def test_a_damaged_checkpoint_changes_no_run(tmp_path, texts, caplog):
    for name in ("straight", "damaged"):
        train(tmp_path, texts, name, stop_at=5)
    path = tmp_path / "damaged" / "checkpoints" / "step-000000005" / "training.safetensors"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)

    for name in ("straight", "damaged"):
        train(tmp_path, texts, name, resume=True)

    assert "[WL004]" in caplog.text
    assert read_state(tmp_path / "damaged") == read_state(tmp_path / "straight")


def kill_and_resume(folder, texts, first, every):
    changes = change("training", max_steps=4, eval_frequency=2, save_frequency=2)

    def run(name, resume=False):
        train(folder, texts, name, resume=resume, **changes)

    assert run_child(lambda: run("straight")) == FINISHED
    output, expected = folder / "killed", read_state(folder / "straight")
    for n in kill_at_each_write(lambda: run("killed"), first, every):
        for model in (LAST, BEST):
            # A model is whole, or not there yet.
            assert not (output / model).exists() or check_digests(output / model), n
        assert run_child(lambda: run("killed", resume=True)) == FINISHED
        assert read_state(output) == expected, n
        assert not list(output.rglob("*.partial")), n
        shutil.rmtree(output)


@pytest.mark.parametrize("first, every", [(45, 40), pytest.param(1, 12, marks=pytest.mark.slow)])
def test_a_run_killed_at_a_write_resumes_to_the_same_bits(tmp_path, texts, first, every):
    run_in_forks((kill_and_resume, tmp_path, texts, first, every))


# Without chance, which each process has its own of.
EXACT = {"dropout": 0.0, "softmax": {"kind": "full"}}


def train_part(rank, port, folder, texts, stop_at, changes):
    """Train as one of two processes."""
    os.environ.update(
        RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
    )
    train(folder / str(rank), texts, folder / "two", resume=True, stop_at=stop_at, **changes)


def assert_same_run(one, two):
    ours, theirs = (load_embedder(run / LAST).bilm.state_dict() for run in (one, two))
    for name, weight in ours.items():
        torch.testing.assert_close(weight, theirs[name], atol=2e-5, rtol=1e-3, msg=name)
    states = [read_state(run)[1] for run in (one, two)]
    assert states[0]["position"] == states[1]["position"]
    assert states[0]["best"] == pytest.approx(states[1]["best"], rel=1e-4)


@pytest.mark.parametrize("batch_tokens", [80, 9])  # with 9, some steps have one sequence
def test_two_processes_are_one(tmp_path, texts, batch_tokens):
    changes = change("training", **EXACT, batch_tokens=batch_tokens, max_steps=8)
    train(tmp_path, texts, "one", **changes)
    for stop_at in (1, 0):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        settings = port, tmp_path, texts, stop_at, changes
        run_in_forks((train_part, 0, *settings), (train_part, 1, *settings))

    assert_same_run(tmp_path / "one", tmp_path / "two")


def test_a_run_may_move_and_resume_in_other_pieces(tmp_path, texts):
    changes = change("training", **EXACT, state_steps=5)
    train(tmp_path, texts, "one", **changes)
    train(tmp_path, texts, "two", stop_at=4, **changes)
    moved = shutil.copytree(texts, tmp_path / "moved")
    changes["training"]["accumulate"] = 3
    train(tmp_path, moved, "two", resume=True, **changes)

    assert_same_run(tmp_path / "one", tmp_path / "two")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.timeout(300)
def test_torchrun_resumes_when_a_process_was_killed(tmp_path, texts):
    changes = change("training", **EXACT, max_steps=60, eval_frequency=30)
    config, two = write_config(tmp_path, texts, **changes), tmp_path / "two"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", "--max-restarts", "1", "-m", "spacy", "elmo", "pretrain"]
    process = subprocess.Popen(
        [*command, str(config), str(two)], stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    with process:
        while process.poll() is None and not list(two.glob("checkpoints/step-?????????")):
            time.sleep(0.01)
        workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(workers[-1]), signal.SIGKILL)
        log = process.communicate()[1]

    assert process.returncode == 0, log[-2000:]
    assert log.count("Started from") == 1  # printed by the first process alone
    train(tmp_path, texts, "one", **changes)
    assert_same_run(tmp_path / "one", two)
