"""What a run leaves is whole, or said not to be: after damage, a kill, a full disk."""

import json
import logging
import random
import re
import resource
import shutil
import subprocess
import sys

import pytest
import safetensors.torch
import torch

from spacy_elmo.files import DIGESTS_FILE, check_all_digests, write_digests
from spacy_elmo.pretraining.checkpoints import BEST, LAST
from spacy_elmo.pretraining.config import RunConfig
from spacy_elmo.pretraining.config_files import load_config
from spacy_elmo.pretraining.log import LOG_FILE, RunLog
from spacy_elmo.pretraining.prepare import prepare
from spacy_elmo.pretraining.processes import Processes
from spacy_elmo.pretraining.run import pretrain

from ..support.helpers import DATA, ROOT
from ..support.runs import SMALL, all_bytes, share_tokenizer, train, write_config

OLD_RUN = DATA / "run_0_1_0"
# Of a file in which a bit is flipped.
N_PLACES = 100


@pytest.fixture(scope="module")
def stopped(texts, tmp_path_factory):
    """Folder with a config and a run that was stopped: two checkpoints, two models, a log."""
    folder = tmp_path_factory.mktemp("stopped")
    config = load_config(write_config(folder, texts))
    steps = iter(range(100))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spacy_elmo.pretraining.log.has_matplotlib", lambda: False)
        log = RunLog(folder / "run")
        pretrain(config, folder / "run", on_report=log, should_stop=lambda: next(steps) == 4)
    assert [path.name for path in sorted((folder / "run" / "checkpoints").iterdir())] == [
        "step-000000004",
        "step-000000005",
    ]
    return folder


@pytest.fixture(scope="module")
def expected(stopped, tmp_path_factory):
    """What the same run remembers at its end."""
    run = tmp_path_factory.mktemp("straight") / "run"
    shutil.copytree(stopped / "run", run)
    pretrain(load_config(stopped / "pretrain.cfg"), run, resume=True)
    return all_bytes(run)


def list_read(run):
    """The files that going on reads if they are whole."""
    last = sorted((run / "checkpoints").iterdir())[-1]
    paths = [*run.iterdir(), *last.iterdir()]
    return sorted(path.relative_to(run) for path in paths if path.is_file())


def flip(path, byte, bit):
    content = bytearray(path.read_bytes())
    content[byte] ^= 1 << bit
    path.write_bytes(content)


@pytest.mark.parametrize(
    "name",
    [
        "vocab.txt",
        "counts.json",
        LOG_FILE,
        f"checkpoints/step-000000005/{DIGESTS_FILE}",
        "checkpoints/step-000000005/training.json",
        "checkpoints/step-000000005/training.safetensors",
        "checkpoints/step-000000005/model.safetensors",
        "checkpoints/step-000000005/vocab.txt",
        f"{BEST}/model.safetensors",
    ],
)
def test_a_flipped_bit_changes_no_run(stopped, expected, tmp_path, name, caplog):
    run, rng = tmp_path / "run", random.Random(name)
    shutil.copytree(stopped / "run", run)
    flip(run / name, rng.randrange((run / name).stat().st_size), rng.randrange(8))

    with caplog.at_level(logging.WARNING):
        pretrain(load_config(stopped / "pretrain.cfg"), run, resume=True, on_report=RunLog(run))

    assert all_bytes(run) == expected
    told = {"vocab.txt": "[WL027]", "counts.json": "[WL027]"}
    if name.startswith("checkpoints/step-000000005"):
        assert "[WL004]" in caplog.text
    else:
        assert told.get(name, "") in caplog.text
    check_all_digests(run / LAST)
    check_all_digests(run / BEST)


def describe(run, config):
    """All that a run that goes on has read."""
    opened = prepare(config, run, resume=True, processes=Processes(0, 1, torch.device("cpu")))
    checkpoint = opened.checkpoint
    return (
        checkpoint.folder.name,
        json.dumps(checkpoint.state, sort_keys=True),
        {name: tensor.numpy().tobytes() for name, tensor in checkpoint.tensors.items()},
        {n: tensor.numpy().tobytes() for n, tensor in opened.model.state_dict().items()},
        opened.vocabulary.words,
        opened.total_steps,
        opened.n_tokens_before,
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_flipped_bit_anywhere_is_told_or_changes_nothing(
    stopped, texts, tmp_path, caplog, monkeypatch
):
    share_tokenizer(monkeypatch.setattr)
    # The length follows from counts.json.
    training = {**SMALL["training"], "max_steps": 0, "max_epochs": 1.0}
    config = RunConfig.check(load_config(write_config(tmp_path, texts, training=training)))
    run, rng = tmp_path / "run", random.Random(0)
    shutil.copytree(stopped / "run", run)
    whole = describe(run, config)
    shutil.rmtree(run / "checkpoints" / "step-000000005")
    before = describe(run, config)
    n_bits = {"same": 0, "fell back": 0, "refused": 0}

    # What is read: all but the models, and the checkpoint before the last.
    for name in list_read(stopped / "run"):
        size = (stopped / "run" / name).stat().st_size
        for place in rng.sample(range(size), min(size, N_PLACES)):
            shutil.rmtree(run)
            shutil.copytree(stopped / "run", run)
            flip(run / name, place, rng.randrange(8))
            caplog.clear()
            try:
                found = describe(run, config)
            except ValueError as err:
                assert re.match(r"\[EL\d{3}\]", str(err)), (name, place)
                n_bits["refused"] += 1
                continue
            if found == whole:
                n_bits["same"] += 1
            else:
                assert found == before and "[WL004]" in caplog.text, (name, place)
                n_bits["fell back"] += 1

    assert n_bits["same"] and n_bits["fell back"] and not n_bits["refused"], n_bits


def test_a_bit_of_what_came_through_a_pipe_is_told(tmp_path, texts):
    (tmp_path / "run").mkdir()
    shutil.copy(texts / "train" / "a.txt", tmp_path / "run" / "stdin.txt")
    with pytest.MonkeyPatch.context() as patch:
        (tmp_path / "run" / "stdin.txt").rename(tmp_path / "piped")
        with (tmp_path / "piped").open() as piped:
            patch.setattr("sys.stdin", piped)
            train(tmp_path, texts, stop_at=3, paths={"train": "-"})
    flip(tmp_path / "run" / "stdin.txt", 100, 0)

    with pytest.raises(ValueError, match=r"EL104.*stdin\.txt"):
        train(tmp_path, texts, resume=True, paths={"train": "-"})


def test_a_checkpoint_without_its_digests_is_passed_over(stopped, expected, tmp_path, caplog):
    run = tmp_path / "run"
    shutil.copytree(stopped / "run", run)
    (run / "checkpoints" / "step-000000005" / DIGESTS_FILE).unlink()

    with caplog.at_level(logging.WARNING):
        pretrain(load_config(stopped / "pretrain.cfg"), run, resume=True)

    assert "[WL004]" in caplog.text and "digests.json is missing" in caplog.text
    assert all_bytes(run) == expected


def rename(old, new):
    return lambda tensors: tensors.__setitem__(new, tensors.pop(old))


def replace(name, change):
    return lambda tensors: tensors.__setitem__(name, change(tensors[name]))


@pytest.mark.parametrize(
    "change",
    [
        rename("0.exp_avg", "exp_avg"),
        rename("0.exp_avg", "99999.exp_avg"),
        rename("0.exp_avg", "0.other"),
        lambda tensors: tensors.pop("0.step"),
        replace("0.exp_avg", lambda tensor: tensor.flatten()[:1]),
        replace("0.exp_avg_sq", lambda tensor: tensor * float("nan")),
        replace("0.step", lambda tensor: tensor.repeat(2)),
    ],
)
def test_a_state_of_another_run_is_refused(stopped, tmp_path, change):
    """From somebody who can also make digests."""
    run = tmp_path / "run"
    shutil.copytree(stopped / "run", run)
    last = run / "checkpoints" / "step-000000005"
    tensors = safetensors.torch.load_file(last / "training.safetensors")
    change(tensors)
    safetensors.torch.save_file(tensors, last / "training.safetensors")
    (last / DIGESTS_FILE).unlink()
    write_digests(last)

    with pytest.raises(ValueError, match="EL257.*step-000000005"):
        pretrain(load_config(stopped / "pretrain.cfg"), run, resume=True)


@pytest.mark.parametrize("name, axis", [("hidden", 0), ("hidden", 3), ("cell", 2), ("cell", 3)])
def test_a_carried_state_of_another_model_is_refused(texts, tmp_path, name, axis):
    training = {"state_steps": 4, "max_steps": 2}
    train(tmp_path, texts, stop_at=2, training=training)
    (last,) = sorted((tmp_path / "run" / "checkpoints").iterdir())[-1:]
    tensors = safetensors.torch.load_file(last / "training.safetensors")
    tensors[f"state.{name}"] = tensors[f"state.{name}"].narrow(axis, 0, 1).contiguous()
    safetensors.torch.save_file(tensors, last / "training.safetensors")
    (last / DIGESTS_FILE).unlink()
    write_digests(last)

    with pytest.raises(ValueError, match="EL257.*shape"):
        train(tmp_path, texts, resume=True, training={**training, "max_steps": 4})


def test_words_are_counted_again_if_they_were_damaged_before_training(tmp_path, texts, caplog):
    config = RunConfig.check(load_config(write_config(tmp_path, texts)))
    processes = Processes(0, 1, torch.device("cpu"))
    words = prepare(config, tmp_path / "run", resume=False, processes=processes).vocabulary.words
    for name in ("vocab.txt", "counts.json"):
        flip(tmp_path / "run" / name, 25, 0)
        with caplog.at_level(logging.WARNING):
            opened = prepare(config, tmp_path / "run", resume=False, processes=processes)
        assert opened.vocabulary.words == words
        assert f"{name}' is damaged" in caplog.text and "[WL027]" in caplog.text


def test_a_run_of_an_older_version_goes_on(tmp_path, texts):
    shutil.copytree(OLD_RUN, tmp_path / "run")

    assert train(tmp_path, texts, resume=True).step == 12

    found, expected = (
        safetensors.torch.load_file(path)
        for path in (
            tmp_path / "run" / LAST / "model.safetensors",
            OLD_RUN / "expected.safetensors",
        )
    )
    for name, tensor in expected.items():
        # The mean state after a sequence, which nothing reads any more.
        if not name.startswith("initial_"):
            torch.testing.assert_close(found[name], tensor, atol=1e-4, rtol=1e-3, msg=name)


def test_a_run_of_an_older_version_is_checked_as_it_was(tmp_path, texts, caplog):
    shutil.copytree(OLD_RUN, tmp_path / "run")
    flip(tmp_path / "run" / "checkpoints" / "step-000000005" / "model.safetensors", 5000, 0)
    with caplog.at_level(logging.WARNING), pytest.raises(ValueError, match="EL096"):
        train(tmp_path, texts, resume=True)
    assert "model.safetensors is damaged" in caplog.text


def test_a_run_killed_before_its_first_checkpoint_starts_over(stopped, texts, tmp_path, caplog):
    (tmp_path / "run").mkdir()
    shutil.copytree(stopped / "run" / BEST, tmp_path / "run" / BEST)
    with pytest.raises(ValueError, match="EL095.*--resume"):
        train(tmp_path, texts)

    with caplog.at_level(logging.WARNING):
        assert train(tmp_path, texts, resume=True).step == 12

    assert "[WL030]" in caplog.text and f"{BEST}.refused" in caplog.text
    assert check_all_digests(tmp_path / "run" / f"{BEST}.refused")


# Each process that trains is a fork of one that never did: torch's threads do not survive.
KILLS = """
import json, os, shutil, sys
from pathlib import Path

import safetensors.torch
import torch
from spacy_elmo.pretraining.checkpoints import BEST, LAST
from spacy_elmo.files import find_folder
from spacy_elmo.files import DIGESTS_FILE, check_all_digests, write_digests
from tests.support import faults
from tests.support.runs import SMALL, all_bytes, prepare_forks, train, write_texts

folder, first, every, eval_frequency, save_frequency = Path(sys.argv[1]), *map(int, sys.argv[2:6])
torch.set_num_threads(1)
prepare_forks()
texts = write_texts(folder / "texts")
training = {**SMALL["training"], "max_steps": 4}
training.update(eval_frequency=eval_frequency, save_frequency=save_frequency)

def run(name, resume=False):
    train(folder, texts, name, resume=resume, training=training)

def in_child(work):
    assert faults._run_child(work) == faults.FINISHED

def models(name):
    found = {}
    for model in (LAST, BEST):
        path = folder / name / model
        assert check_all_digests(path)
        found[model] = {file.name: read(file) for file in path.iterdir()}
    return found

def read(file):
    if file.suffix == ".safetensors":  # its description is in no certain order
        tensors = safetensors.torch.load_file(file)
        return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}
    return None if file.name == DIGESTS_FILE else file.read_bytes()

in_child(lambda: run("straight"))
kinds = set()
for n in faults.kill_at_each_write(lambda: run("killed"), first, every):
    output = folder / "killed"
    # A model is there whole, or not yet.
    for model in (LAST, BEST):
        path = find_folder(output / model)
        if path.exists():
            assert check_all_digests(path), n
            kinds.add((model, path.name))
    in_child(lambda: run("killed", resume=True))
    assert all_bytes(output) == all_bytes(folder / "straight"), n
    assert models("killed") == models("straight"), n
    # A small file's name is that of its process; weights take the place of those before.
    left = [path.name for path in output.rglob("*/") if path.suffix in (".partial", ".previous")]
    assert not left, (n, left)
    shutil.rmtree(output)
print(n, sorted(kinds))
"""


def run_source(source, *arguments):
    """Run Python source in a process of its own. RETURNS what it printed."""
    command = [sys.executable, "-c", source, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return result.stdout


def test_a_killed_run_goes_on_to_the_same_bits(tmp_path):
    # From among the writes: the first checkpoint, the model that is replaced, and so on.
    run_source(KILLS, tmp_path, 45, 40, 2, 2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("every, eval_frequency, save_frequency", [(1, 2, 2), (11, 1, 3)])
def test_a_run_killed_at_any_write_goes_on_to_the_same_bits(
    tmp_path, every, eval_frequency, save_frequency
):
    told = run_source(KILLS, tmp_path, 1, every, eval_frequency, save_frequency)

    if every == 1:
        assert f"'{BEST}.previous'" in told  # killed between the two renames


# As above; the parent sends signals, again and again, until the run has come to its end.
SIGNALS = """
import os, random, signal, sys, time, traceback
from pathlib import Path

import torch, typer
from spacy.cli._util import app, registry
from spacy_elmo.pretraining.checkpoints import has_checkpoints
from tests.support import faults
from spacy_elmo.pretraining import run_log
from tests.support.runs import SMALL, all_bytes, prepare_forks, write_config, write_texts

run_log.has_matplotlib = lambda: False  # drawing takes longer than the run
folder, seed, n_signals = Path(sys.argv[1]), *map(int, sys.argv[2:4])
torch.set_num_threads(1)
registry.cli.get_all()
prepare_forks()
config = write_config(folder, write_texts(folder / "texts"), training={**SMALL["training"]})

def start(name):
    child = os.fork()
    if child == 0:
        code = 77
        try:
            arguments = ["elmo", "pretrain", str(config), str(folder / name), "--resume"]
            app(arguments, standalone_mode=False)
            code = 0
        except SystemExit as err:
            code = err.code or 0
        except (KeyboardInterrupt, typer.Abort):
            code = 1
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child

def wait(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

started = time.monotonic()
assert wait(start("straight")) == 0
seconds = time.monotonic() - started
rng, codes, n_whole = random.Random(seed), [], 0
for i in range(n_signals):
    child = start("stopped")
    time.sleep(rng.random() * seconds)
    for number in rng.sample([signal.SIGINT, signal.SIGTERM], rng.choice([1, 2])):
        try:
            os.kill(child, number)
        except ProcessLookupError:
            pass
    codes.append(wait(child))
    n_whole += has_checkpoints(folder / "stopped")
# Saved; stopped before the first step; before there was anybody to listen.
assert set(codes) <= {0, 1, 128 + signal.SIGINT, 128 + signal.SIGTERM, -signal.SIGTERM}, codes
assert wait(start("stopped")) == 0
assert all_bytes(folder / "stopped") == all_bytes(folder / "straight"), codes
print(codes, n_whole)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_signals_at_random_moments_cost_nothing_but_time(tmp_path):
    run_source(SIGNALS, tmp_path, 0, 2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_many_signals_at_random_moments_cost_nothing_but_time(tmp_path, seed):
    run_source(SIGNALS, tmp_path, seed, 15)


def test_a_full_disk_costs_nothing_but_time(stopped, expected, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(stopped / "run", run)
    command = [sys.executable, "-m", "spacy", "elmo", "pretrain", stopped / "pretrain.cfg", run]
    result = subprocess.run(
        [str(part) for part in (*command, "--resume")], capture_output=True, text=True,
        check=False,
        # Less than a checkpoint's largest file.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (15_000, 15_000)),
    )  # fmt: skip

    assert result.returncode == 1
    assert re.search(r"\[EL\d{3}\]", result.stderr) and "Traceback" not in result.stderr
    pretrain(load_config(stopped / "pretrain.cfg"), run, resume=True)
    assert all_bytes(run) == expected
