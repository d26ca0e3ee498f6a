"""Many runs: what they tell, what stops them, and how they go on."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from spacy.tokens import DocBin

from spacy_elmo.experiments import jobs
from spacy_elmo.experiments.jobs import run_all
from spacy_elmo.experiments.progress import RunLog, RunProgress
from spacy_elmo.experiments.results import get_origin
from spacy_elmo.experiments.run_settings import RunSettings, read_settings
from spacy_elmo.experiments.runs import Run, hash_config
from spacy_elmo.experiments.variants import choose_variants
from spacy_elmo.files import lock_folder, read_checked_json, write_checked_json
from spacy_elmo.layers.torch_shim import count_gpus
from spacy_elmo.pipeline.presets import make_config
from spacy_elmo.utils import read_template

from ..support.damage import each_mutation, flip, replace_by_others
from ..support.faults import fail_at_each_write, kill_at_each_write
from .test_experiments import make_result, make_settings

RUNS = [Run(variant, 1.0, seed) for variant in choose_variants("gain", 2) for seed in (0, 1)]


@pytest.fixture
def settings(tagged_corpus, weights):
    return make_settings(tagged_corpus, weights)


@pytest.fixture
def made(monkeypatch):
    """The titles of runs that are made, without making them."""
    titles = []

    def run_missing(runs, settings, output, *_):
        for run in runs:
            titles.append(run.title)
            result = make_result(run.variant.name, run.seed, 0.5, [0])
            config = hash_config(run, settings)
            yield write_run(output, run, {**result, **get_origin(), "config": config})

    monkeypatch.setattr(jobs, "_run_missing", run_missing)
    return titles


def write_run(output, run, result):
    write_checked_json(output / f"{run.name}.json", result)
    return result


def test_a_log_tells_where_a_run_stands(monkeypatch):
    told, now = [], [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    log = RunLog("x", "acc", told.append)
    log_step, finish = log(None)

    log_step({"step": 0, "epoch": 0, "other_scores": {"acc": 0.5}})
    for _ in range(9):  # a tenth of a second each
        now[0] += 0.1
        log_step(None)
    log_step({"step": 10, "epoch": 1, "other_scores": {"acc": 0.25}})
    log_step({"step": 20, "epoch": 2, "other_scores": {"acc": None}})
    finish()

    assert told == [
        RunProgress("x", 0),
        RunProgress("x", 0, 0.5, True),
        RunProgress("x", 6, 0.5),
        RunProgress("x", 10, 0.25, True),
        RunProgress("x", 20, None, True),
    ]
    steps = [(line["step"], line["epoch"], line["score"]) for line in log.curve]
    assert steps == [(0, 0, 0.5), (10, 1, 0.25)]


def test_finished_runs_are_not_made_again(settings, tmp_path, made):
    output = tmp_path / "out"
    first = list(run_all(RUNS[:2], settings, output))
    assert list(run_all(RUNS, settings, output))[:2] == first
    assert made == ["plain, 100%, seed 0", "plain, 100%, seed 1", "elmo, 100%, seed 0",
                    "elmo, 100%, seed 1"]  # fmt: skip


def test_damaged_results_are_made_again(settings, tmp_path, made, caplog):
    output = tmp_path / "out"
    expected = list(run_all(RUNS[:1], settings, output))
    path = output / f"{RUNS[0].name}.json"
    whole = path.read_bytes()
    for bit in range(0, 8 * len(whole), 397):
        made.clear()
        caplog.clear()
        path.write_bytes(whole)
        flip(path, bit)
        assert list(run_all(RUNS[:1], settings, output)) == expected
        if made:
            assert "[WL023]" in caplog.text and path.read_bytes() == whole
    # Of another run; and of too little.
    for content in ({**expected[0], "seed": 1}, {"variant": "plain", "share": 1.0, "seed": 0}):
        made.clear()
        write_checked_json(path, content)
        assert list(run_all(RUNS[:1], settings, output)) == expected and made


def test_runs_of_an_earlier_preset_are_made_again(settings, tmp_path, made, monkeypatch, caplog):
    output = tmp_path / "out"
    list(run_all(RUNS, settings, output))
    made.clear()
    template = read_template("word_features")
    template["tok2vec"]["word_dropout"] /= 2
    # Read where the config is made, for `static_vectors`, whose first half it is.
    monkeypatch.setattr(
        "spacy_elmo.pipeline.presets.read_template",
        lambda name: template.copy() if name == "word_features" else read_template(name),
    )

    list(run_all(RUNS, settings, output))

    # Without ELMo there is no word dropout.
    assert made == ["elmo, 100%, seed 0", "elmo, 100%, seed 1"]
    assert caplog.text.count("WL023") == 2


def test_a_config_is_the_same_wherever_its_files_are(settings):
    run = RUNS[-1]
    moved = RunSettings(**{**vars(settings), "corpus": "elsewhere"})

    assert hash_config(run, settings) == hash_config(run, moved)
    assert hash_config(run, settings) == hash_config(run._replace(seed=7), settings)
    others = [RUNS[0], RUNS[-1]._replace(variant=choose_variants("weighting", 2)[1])]
    assert len({hash_config(each, settings) for each in (run, *others)}) == 3


def test_runs_share_the_processors_that_are_theirs(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 8}, raising=False)
    assert jobs._count_processors() == 3
    # Where no system can tell: macOS, Windows.
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert jobs._count_processors() == 7


def test_other_things_in_the_place_of_results(settings, tmp_path, made):
    output = tmp_path / "out"
    list(run_all(RUNS[:1], settings, output))
    for kind in replace_by_others(output / "settings.json"):
        if kind == "nothing":
            continue
        with pytest.raises(ValueError, match=r"EL10[013]"):
            list(run_all(RUNS[:1], settings, output))


def test_damaged_settings_are_said(settings, tmp_path, made):
    output = tmp_path / "out"
    list(run_all([], settings, output))
    content = (output / "settings.json").read_text()
    (output / "settings.json").write_text(content.replace('"max_steps": 4', '"max_steps": 5'))
    (output / "plain_1_0.json").write_text("{}")

    with pytest.raises(ValueError, match="EL142.*settings.json"):
        list(run_all([], settings, output))


def test_corpus_and_weights_are_known_by_their_content(settings, tmp_path, made, monkeypatch):
    output = tmp_path / "out"
    list(run_all([], settings, output))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(settings.weights, tmp_path / "copy")

    same = RunSettings("corpus", "tagger", weights="copy", max_steps=4, eval_frequency=2)
    assert list(run_all([], same, output)) == []


def test_another_corpus_gets_the_name_of_a_folder(settings, tmp_path, made):
    list(run_all([], settings, tmp_path / "out"))
    (tmp_path / "out" / "plain_1_0.json").write_text("{}")
    other = tmp_path / "ewt"
    shutil.copytree(settings.corpus, other)
    DocBin().to_disk(other / "train.spacy")
    (other / "train.spacy").write_bytes((other / "dev.spacy").read_bytes())

    changed = RunSettings(str(other), "tagger", "en", settings.weights, 4, 0, 2)
    with pytest.raises(ValueError, match=r"EL065.*train.*such as '.*out/ewt'.*`report`"):
        list(run_all([], changed, tmp_path / "out"))


def test_settings_without_a_run_are_replaced(settings, tmp_path):
    output = tmp_path / "out"
    list(run_all([], settings, output))

    list(run_all([], RunSettings(**{**vars(settings), "max_steps": 5}), output))

    assert read_settings(output)["max_steps"] == 5


def test_a_config_that_is_named_no_more_is_another_setting(settings, tmp_path):
    make_config("word_features", ["tagger"]).to_disk(tmp_path / "x.cfg")
    output = tmp_path / "out"
    list(run_all([], RunSettings(**{**vars(settings), "config": str(tmp_path / "x.cfg")}), output))
    (output / "plain_1_0.json").write_text("{}")

    with pytest.raises(ValueError, match="EL065.*config file"):
        list(run_all([], settings, output))


@pytest.mark.parametrize(
    "changes, seed, code",
    [
        ({"component": "nope"}, 0, "EL061"),
        ({"component": "sentencizer"}, 0, "EL061"),
        ({"corpus": "nowhere"}, 0, "EL066"),
        ({"lang": "zzz"}, 0, "EL161.*zzz"),
        ({}, -1, "EL151.*-1"),
        ({}, 2**32, "EL151"),
    ],
)
def test_mistakes_are_told_before_anything_is_made(settings, tmp_path, changes, seed, code):
    changed = RunSettings(**{**vars(settings), **changes})
    with pytest.raises(ValueError, match=code):
        next(run_all([Run(RUNS[0].variant, 1.0, seed)], changed, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_language_whose_tokenizer_needs_more_is_possible(settings):
    # Runs read words as they were annotated, with spaCy's rule-based tokenizer.
    jobs._check(RUNS[:1], RunSettings(**{**vars(settings), "lang": "ko"}))


@pytest.mark.parametrize("content", [b"", b"no docs", b"x\x9cK\xcb"], ids=str)
@pytest.mark.parametrize("split", ["train", "test"])
def test_a_corpus_that_cannot_be_read_is_told_first(settings, tmp_path, split, content):
    path = Path(settings.corpus) / f"{split}.spacy"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"EL148.*{split}.spacy"):
        next(run_all(RUNS, settings, tmp_path / "out"))
    DocBin().to_disk(path)
    with pytest.raises(ValueError, match=f"EL148.*{split}.spacy.*no docs"):
        next(run_all(RUNS, settings, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("gpu_id", [-2, count_gpus(), 99])
def test_a_gpu_that_is_not_there_is_named_before_anything_is_made(settings, tmp_path, gpu_id):
    with pytest.raises(ValueError, match=f"EL325.*no GPU {gpu_id} .*sees {count_gpus()} of"):
        next(run_all(RUNS, settings, tmp_path / "out", gpu_id=gpu_id))
    assert not (tmp_path / "out").exists()


@pytest.mark.gpu
def test_runs_are_made_on_a_gpu(settings, tmp_path):
    (result,) = run_all(RUNS[:1], settings, tmp_path / "out", gpu_id=0)
    assert result["dev"]["tag_acc"] > 0 and "NVIDIA" in result["gpu"]
    # With its GPU it is whole.
    assert list(run_all(RUNS[:1], settings, tmp_path / "out")) == [result]


def test_one_process_makes_the_runs_of_a_folder(settings, tmp_path, made):
    (tmp_path / "out").mkdir()
    with (
        lock_folder(tmp_path / "out", wait=False),
        pytest.raises(ValueError, match="EL143.*out"),
    ):
        next(run_all(RUNS, settings, tmp_path / "out"))
    assert len(list(run_all(RUNS, settings, tmp_path / "out"))) == 4


def test_a_killed_process_leaves_results_whole(settings, tmp_path, made):
    output, expected = tmp_path / "out", None

    def work():
        settings.fix(output)
        for run in RUNS[:2]:
            write_run(output, run, {"seed": run.seed})

    settings.fix(output)
    expected = (output / "settings.json").read_bytes()
    shutil.rmtree(output)
    for fault in (kill_at_each_write, fail_at_each_write):
        for _ in fault(work):
            for path in output.glob("*.json"):
                if ".partial" not in path.name:
                    read_checked_json(path, required=True)
            settings.fix(output)
            assert (output / "settings.json").read_bytes() == expected
            shutil.rmtree(output)


def test_mutations_of_results_are_told(settings, tmp_path, made):
    output = tmp_path / "out"
    expected = list(run_all(RUNS, settings, output))
    n_told = 0
    for name, kind in each_mutation(output, tmp_path / "copy", 10):
        made.clear()
        try:
            found = list(run_all(RUNS, settings, tmp_path / "copy"))
            found.sort(key=lambda result: expected.index(result))
            assert found == expected, f"{kind} in {name}"
        except ValueError as err:
            assert "[EL" in str(err) and name == "settings.json"
            n_told += 1
        n_told += len(made)
    assert n_told > 30


WORK = """
import os, sys
from pathlib import Path
from spacy_elmo.experiments.jobs import run_all
from spacy_elmo.experiments.runs import Run
from spacy_elmo.experiments.run_settings import RunSettings
from spacy_elmo.experiments.variants import choose_variants
if __name__ == "__main__":
    corpus, weights, output = sys.argv[1:]
    settings = RunSettings(corpus, "tagger", weights=weights, max_steps=100_000, eval_frequency=5)
    runs = [Run(variant, 1.0, 0) for variant in choose_variants("gain", 2)]
    report = lambda progress: print(progress, flush=True)
    list(run_all(runs, settings, Path(output), n_jobs=2, report=report))
"""


def find_children(pid):
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_runs_end_with_who_started_them(tagged_corpus, weights, tmp_path, number):
    script = tmp_path / "work.py"
    script.write_text(WORK)
    command = [sys.executable, script, tagged_corpus, weights, tmp_path / "out"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        # What runs in the background of a shell ignores the signal, and so do its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        lines = (line for line in process.stdout if "is_new=True" in line)
        next(lines), next(lines)
        children = find_children(process.pid)
        process.send_signal(number)
        process.wait(60)
    deadline = time.monotonic() + 30
    while any(map(is_alive, children)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(children) >= 2 and not any(map(is_alive, children))
    # Who comes next finds the folder free.
    with lock_folder(tmp_path / "out", wait=False):
        pass
    if number == signal.SIGINT:
        assert not list((tmp_path / "out").glob("*.partial"))


def test_a_run_whose_process_is_killed_is_said(settings, tmp_path):
    def kill(progress):
        if progress.is_new:
            for child in multiprocessing.active_children():
                os.kill(child.pid, signal.SIGKILL)

    output = tmp_path / "out"
    with pytest.raises(ValueError, match="EL146"):
        list(run_all(RUNS[:2], settings, output, n_jobs=2, report=kill))
    assert not list(output.glob("*.partial"))


@pytest.mark.slow
def test_a_run_says_where_it_stands(settings, tmp_path):
    told, output = [], tmp_path / "out"
    (result,) = run_all(RUNS[:1], settings, output, report=told.append)
    assert told[0] == RunProgress("plain, 100%, seed 0", 0)
    assert [p.step for p in told if p.is_new] == [line["step"] for line in result["curve"]]
    assert json.loads((output / "plain_1_0.json").read_text())["curve"] == result["curve"]
