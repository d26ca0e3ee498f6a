"""`EmbedJob`: from the files of the input to the manifest."""

import os
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any, Callable, Dict, Generator, Iterator, List, NamedTuple

from ..errors import Errors
from ..files import lock_folder
from ..text.stdin import STDIN
from .arrow import require_arrow
from .bulk_inputs import find_inputs, require_readable
from .bulk_settings import BulkSettings
from .job_files import (
    JOB,
    MANIFEST,
    describe_job,
    finish_job,
    read_job,
    read_manifest,
    require_same_job,
    require_shards,
    start_job,
)
from .job_inputs import describe_inputs, list_sources, require_same_inputs
from .journal import JOURNAL, REJECTS, Journal, State, read_state, write_rejects
from .planning import plan_tasks
from .record_readers import Keys
from .records import Result, Task
from .retries import Retries
from .task_worker import TaskWorker

# Computes tasks, and yields the result of each of them once.
Engine = Callable[[Iterator[Task], TaskWorker, Retries], Generator[Result, None, None]]

# Names of what killed processes leave.
_LEFT = ("*.partial.*", ".record-*")


class JobProgress(NamedTuple):
    """n_bytes (int): of the input, as it is stored, read so far. total (int): of all files.
    n_tokens (int), n_rows (int), n_rejects (int): since the job was started or resumed."""

    n_bytes: int
    total: int
    n_tokens: int
    n_rows: int
    n_rejects: int


def embed_files(
    text: str,
    output: Path,
    settings: BulkSettings,
    engine: Engine,
    *,
    resume: bool = False,
    input_format: str = "txt",
    gpu: bool = False,
) -> Generator[JobProgress, None, None]:
    """Embed text, and write the vectors to a folder.

    text (str): file, folder or glob, or "-" for the standard input.
    output (Path): the folder.
    settings (BulkSettings): what to compute.
    engine (Engine): where to compute it.
    resume (bool): whether to resume a job that was stopped, if there is one.
    input_format (str): of the standard input.
    gpu (bool): whether to compute on a GPU.
    YIELDS (JobProgress): at the start and after each shard. At the end the manifest is written.
    RAISES (ValueError): EL240 without pyarrow, EL243 and EL244 for a folder that holds something,
        EL143 if another process writes there, EL245 and EL246 if the job or its input is not what
        it was, EL248 and EL300 if nothing can be embedded; else as the parts of the job.
    RAISES (OSError): if something cannot be read or written. The job can be resumed then.
    """
    settings.check()
    settings = settings.resolve()
    if settings.format != "spacy":
        require_arrow(output)
    _check_output(output, resume)
    # Before a folder is made that would hold nothing; what comes through a pipe is saved there.
    files = [] if text == STDIN else find_inputs(text, output)
    keys = Keys(settings.text_key, settings.id_key)
    require_readable(files, keys)
    output.mkdir(parents=True, exist_ok=True)
    with lock_folder(output, wait=False):
        if not resume:
            _remove(output, "_stdin.*")
        files = files or find_inputs(text, output, input_format)
        worker = TaskWorker(settings, output, gpu=gpu)
        worker.description = worker.load().describe()
        job = describe_job(settings, worker.description, describe_inputs(files))
        if (output / MANIFEST).exists():
            manifest = read_manifest(output)
            require_same_job(output, manifest, job)
            require_shards(output, manifest)
            return
        state = State({})
        if (output / JOB).exists():
            before = read_job(output)
            require_same_job(output, before, job)
            # With the paths that the first shards have.
            job = before
            state = read_state(output)
        else:
            start_job(output, job)
        # What killed processes left.
        _remove(output, *_LEFT)
        yield from _run(files, output, job, state, worker, engine)


def _check_output(output: Path, resume: bool) -> None:
    """RAISES (ValueError): EL243 for a job that is there, EL244 for anything else."""
    if not output.exists():
        return
    names = {MANIFEST: "is finished", JOB: "was stopped, or goes on"}
    there = [state for name, state in names.items() if (output / name).exists()]
    if there and not resume:
        raise ValueError(Errors.EL243.format(path=output, state=there[0]))
    others = [output.name] if not output.is_dir() else sorted(os.listdir(output))
    ours = (".", "_stdin.", "_job.")
    foreign = [name for name in others if not name.startswith(ours)]
    if foreign and not there:
        raise ValueError(Errors.EL244.format(path=output, examples=", ".join(foreign[:3])))


def _remove(output: Path, *patterns: str) -> None:
    for path in chain.from_iterable(output.glob(pattern) for pattern in patterns):
        path.unlink(missing_ok=True)


def _run(
    files: List[Path],
    output: Path,
    job: Dict[str, Any],
    state: State,
    worker: TaskWorker,
    engine: Engine,
) -> Iterator[JobProgress]:
    total = sum(path.stat().st_size for path in files)
    progress = JobProgress(state.start.n_bytes, total, 0, 0, 0)
    yield progress
    tasks = plan_tasks(
        files,
        worker.settings,
        first=state.first,
        start=state.start,
        done={*state.results},
        sources=list_sources(job["inputs"]),
    )
    with (
        closing(Journal(output)) as journal,
        closing(engine(tasks, worker, Retries(output))) as results,
    ):
        for result in results:
            journal.add(result)
            state = state.add(result)
            progress = JobProgress(
                max(progress.n_bytes, result.end.n_bytes),
                total,
                progress.n_tokens + result.n_tokens,
                progress.n_rows + result.n_rows,
                progress.n_rejects + len(result.rejects),
            )
            yield progress
    _remove(output, *_LEFT)
    # What was read may have changed meanwhile.
    require_same_inputs(output, job["inputs"], describe_inputs(files))
    reason = write_rejects(output)
    if not any(result.n_rows for result in state.results.values()):
        if reason is None:
            # There is nothing to resume: the folder is free for the right input.
            _remove(output, JOB, JOURNAL)
            raise ValueError(Errors.EL300.format(n=len(files), path=files[0]))
        path = output / REJECTS
        raise ValueError(Errors.EL248.format(n=state.n_rejects, reason=reason, path=path))
    finish_job(output, job, state)
