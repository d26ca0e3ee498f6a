"""All training runs, each in a separate process."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import torch
import typer
from spacy.training import Corpus
from spacy.util import load_config
from thinc.api import Config, NumpyOps, require_gpu, set_current_ops, set_gpu_allocator

from spacy_elmo.experiments.results import get_origin
from spacy_elmo.experiments.runs import find_corpus, train_best
from spacy_elmo.files import (
    digest,
    digest_file,
    lock_folder,
    read_json_object,
    write_file,
    write_json,
)

from .rows import ROWS, TASKS, TIMED, Inputs, Row, Task, explain_missing, make_training_config

SCRIPT = Path(__file__).parent.with_suffix(".py")
# What libraries of matrix products read at their start.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# What makes pipelines of several libraries faster: OpenBLAS's threads give their processors back
# at once when they wait, and the C library (glibc) keeps freed memory.
QUIET = {"OPENBLAS_THREAD_TIMEOUT": "4"}
KEPT = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}
# In the folder of a job.
LOG = "log.txt"


def limit_threads(n_threads: int = 1) -> dict[str, str]:
    """RETURNS (dict[str, str]): environment of a process with this number of threads."""
    return {**os.environ, **QUIET, **KEPT, **dict.fromkeys(_THREADS, str(n_threads))}


def run_processes(folders: Sequence[Path], n_jobs: int) -> Iterator[tuple[Path, int]]:
    """Run `rivals.py train FOLDER` for each folder, its output in FOLDER/log.txt.

    folders (Sequence[Path]): prepared ones.
    n_jobs (int): processes at once.
    YIELDS (tuple[Path, int]): a folder whose process has ended, and its exit status. Those that
        still run are ended if the caller is.
    """
    waiting = iter(folders)
    running: dict[subprocess.Popen[bytes], Path] = {}
    try:
        while True:
            while len(running) < n_jobs and (folder := next(waiting, None)) is not None:
                print(f"{time.strftime('%H:%M:%S')} {folder.parent.name} {folder.name}", flush=True)
                running[_start(folder)] = folder
            if not running:
                return
            time.sleep(0.2)
            for process in [p for p in running if p.poll() is not None]:
                yield running.pop(process), process.returncode
    finally:
        for process in running:
            process.terminate()
            process.wait()


def _start(folder: Path) -> "subprocess.Popen[bytes]":
    with (folder / LOG).open("wb") as log:
        return subprocess.Popen(
            [sys.executable, str(SCRIPT), "train", str(folder)],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=limit_threads(),
        )


RESULTS, SKIPPED = "results", "skipped.json"
# Runs that take less processor time are made with all seeds.
LONGEST = 1800.0


class Run(NamedTuple):
    """A row on a data set with a seed."""

    row: Row
    task: str
    seed: int

    def find(self, work: Path) -> Path:
        """RETURNS (Path): Its folder of temporary files; with .json, its result."""
        return work / RESULTS / self.task / f"{self.row.name}_{self.seed}"

    def find_result(self, work: Path) -> Path:
        """RETURNS (Path): Its result."""
        folder = self.find(work)
        return folder.with_name(f"{folder.name}.json")

    def find_model(self, work: Path) -> Path:
        """RETURNS (Path): Its best pipeline, which is kept of the first seed of some tasks."""
        return self.find(work) / MODEL


def read_result(run: Run, work: Path) -> dict[str, Any] | None:
    """RETURNS (dict[str, Any] | None): of a run; None if it was not made."""
    path = run.find_result(work)
    return read_json_object(path) if path.exists() else None


def run_all(
    tasks: dict[str, Task],
    rows: Sequence[str],
    seeds: Sequence[int],
    inputs: Inputs,
    corpora: Path,
    *,
    n_jobs: int,
    gpu_id: int,
    renew: bool,
) -> list[Run]:
    """Make the runs that have no result: the first seed of all rows, then the others of those
    that are quick, and chosen in their group.

    RETURNS (list[Run]): those that failed.
    """
    (inputs.work / RESULTS).mkdir(parents=True, exist_ok=True)
    with lock_folder(inputs.work / RESULTS):
        kept = [ROWS[name] for name in rows if not explain_missing(ROWS[name], inputs)]
        _note_skipped(inputs)
        first = [Run(row, task, seeds[0]) for task in tasks for row in kept]
        failed = _make(first, tasks, inputs, corpora, n_jobs, gpu_id, renew)
        later = [
            Run(row, task, seed)
            for task in tasks
            for row in kept
            if is_quick(Run(row, task, seeds[0]), inputs.work)
            and choose(row, task, seeds[0], inputs.work) == row.name
            for seed in seeds[1:]
        ]
        return failed + _make(later, tasks, inputs, corpora, n_jobs, gpu_id, renew)


def is_quick(run: Run, work: Path) -> bool:
    """RETURNS (bool): Whether the run is done and took little processor time."""
    result = read_result(run, work)
    return result is not None and result["cpu_seconds"] < LONGEST


def choose(row: Row, task: str, seed: int, work: Path) -> str | None:
    """RETURNS (str | None): Name of the row of the group that is best on dev; None before
    there is a result."""
    group = [each for each in ROWS.values() if each.group == row.group] if row.group else [row]
    results = {each.name: read_result(Run(each, task, seed), work) for each in group}
    scores = {name: r["dev"][r["score"]] for name, r in results.items() if r is not None}
    return max(scores, key=lambda name: scores[name]) if scores else None


def _note_skipped(inputs: Inputs) -> None:
    """Write why rows are not measured, for the report."""
    reasons = {name: explain_missing(row, inputs) for name, row in ROWS.items()}
    reasons = {name: reason for name, reason in reasons.items() if reason}
    for name, reason in reasons.items():
        typer.echo(f"{name} is skipped: {reason}")
    write_json(inputs.work / RESULTS / SKIPPED, {"rows": reasons})


def _make(
    runs: list[Run],
    tasks: dict[str, Task],
    inputs: Inputs,
    corpora: Path,
    n_jobs: int,
    gpu_id: int,
    renew: bool,
) -> list[Run]:
    jobs = []
    for run in runs:
        config = make_training_config(run.row, tasks[run.task], inputs, run.seed)
        settings = describe(run, config, inputs, corpora / run.task)
        if not _is_done(run, settings, inputs.work, renew):
            jobs.append((run, config, settings))
    typer.echo(f"{len(runs)} runs, {len(jobs)} of them to be made")
    prepared = {
        _write_job(run, config, settings, inputs.work, corpora / run.task, gpu_id): run
        for run, config, settings in jobs
    }
    ended = run_processes(list(prepared), n_jobs)
    return [prepared[folder] for folder, status in ended if _finish(status, folder)]


def describe(run: Run, config: Config, inputs: Inputs, corpus: Path) -> dict[str, Any]:
    """RETURNS (dict[str, Any]): All that a result depends on, files by their content."""
    without_paths = {key: value for key, value in config.items() if key != "paths"}
    return {
        "config": digest(Config(without_paths).to_str(interpolate=False).encode("utf-8")),
        "max_steps": config["training"]["max_steps"],
        "patience": config["training"]["patience"],
        "corpus": {split: digest_file(path) for split, path in find_corpus(corpus).items()},
        "inputs": {name: inputs.hash(name) for name in run.row.needs},
    }


def _is_done(run: Run, settings: dict[str, Any], work: Path, renew: bool) -> bool:
    result = read_result(run, work)
    if result is None:
        return False
    changed = [key for key, value in settings.items() if result["settings"].get(key) != value]
    if changed and not renew:
        path = run.find_result(work)
        problem = f"{path} was made with another {', '.join(changed)}: --renew to replace it"
        raise typer.BadParameter(problem)
    return not changed


def _write_job(
    run: Run, config: Config, settings: dict[str, Any], work: Path, corpus: Path, gpu_id: int
) -> Path:
    """RETURNS (Path): Folder with all that a process needs."""
    folder = run.find(work)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    splits = find_corpus(corpus)
    config["paths"].update(train=str(splits["train"]), dev=str(splits["dev"]))
    write_file(folder / CONFIG, config.to_str(interpolate=False).encode("utf-8"))
    keep = run.seed == 0 and run.task in TIMED
    job = {
        "row": run.row.name,
        "task": run.task,
        "seed": run.seed,
        "gpu_id": gpu_id,
        "score": TASKS[run.task].score,
        "settings": settings,
        "test": str(splits["test"]),
        "result": str(run.find_result(work)),
        "keep": str(run.find_model(work)) if keep else None,
    }
    write_json(folder / JOB, job)
    return folder


def _finish(status: int, folder: Path) -> bool:
    """Remove what is not needed any more. RETURNS (bool): Whether it failed: then its log is
    kept."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    if status:
        tail = (folder / LOG).read_text("utf-8", errors="replace")[-1500:]
        typer.echo(f"{folder} failed with {status}, see its {LOG}:\n{tail}", err=True)
    elif not (folder / MODEL).exists():
        shutil.rmtree(folder)
    return bool(status)


# Packages whose versions are noted, too, if they are installed.
OTHERS = ("spacy-transformers", "transformers")
# In the folder of a run.
CONFIG, JOB, MODEL = "config.cfg", "job.json", "model"


def run_job(folder: Path) -> None:
    """Train what FOLDER/config.cfg says, choose on dev, test once, and write the result.

    folder (Path): the run's own, with job.json: "result", the file to write; "row", "task",
        "seed" and "settings", which are copied; "score", the key; "test", a .spacy file;
        "keep", folder for the best pipeline, or None; "gpu_id", or -1.
    """
    torch.set_num_threads(1)
    job = read_json_object(folder / JOB)
    device = choose_device(job["gpu_id"])
    start, cpu_start = time.perf_counter(), time.process_time()
    config = load_config(folder / CONFIG, interpolate=False)
    (folder / "out").mkdir(exist_ok=True)
    best, curve = train_best(config, job["score"], folder / "out", print_score)
    result: dict[str, Any] = {
        **{key: job[key] for key in ("row", "task", "seed", "score", "settings")},
        "dev": best.meta["performance"],
        "test": best.evaluate(list(Corpus(job["test"])(best))),
        "curve": curve,
        "seconds": round(time.perf_counter() - start, 1),
        "cpu_seconds": round(time.process_time() - cpu_start, 1),
        "device": device,
        **get_origin(),
    }
    with suppress(PackageNotFoundError):
        result["versions"].update({name: version(name) for name in OTHERS})
    if job["keep"]:
        shutil.rmtree(job["keep"], ignore_errors=True)
        shutil.move(folder / "out" / "model-best", job["keep"])
    # Last: what has a result is done.
    write_json(Path(job["result"]), result)


def choose_device(gpu_id: int) -> str:
    """gpu_id (int): -1 for none. RETURNS (str): what is trained on."""
    if gpu_id < 0:
        # NumPy's products are faster than Thinc's default ones: benchmarks/tagger_epoch.py.
        set_current_ops(NumpyOps(use_blis=False))
        return "cpu"
    set_gpu_allocator("pytorch")
    require_gpu(gpu_id)
    return torch.cuda.get_device_name(gpu_id)


def print_score(step: int, score: float | None) -> None:
    """Print an evaluation on dev."""
    print(step, score, flush=True)
