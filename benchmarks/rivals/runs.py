"""All training runs: which are missing, in which order, each in a process of its own."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer
from thinc.api import Config

from spacy_elmo.experiments.runs import find_corpus
from spacy_elmo.files import (
    digest,
    digest_file,
    lock_folder,
    read_json_object,
    write_file,
    write_json,
)

from .inputs import Inputs
from .processes import LOG, run_processes
from .rows import ROWS, Row, explain_missing, make_training_config
from .tasks import TASKS, TIMED, Task
from .training import CONFIG, JOB, MODEL

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
    """RETURNS (dict[str, Any] | None): of a run; None if there is none."""
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
