"""Many runs: resumable, in parallel processes that end with the process that started them."""

import logging
import os
import shutil
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.queues import Queue
from pathlib import Path
from queue import Empty
from typing import Generator, Iterator, List, Optional, Sequence, Set

import torch
from thinc.api import NumpyOps, require_gpu, set_current_ops

from ..errors import Errors, Warnings
from ..files import lock_folder, read_checked_json
from ..layers.torch_shim import NO_GPU, check_gpu
from ..text.languages import require_language
from ..utils import end_with_parent, release_memory, require_seed
from .progress import OnProgress, RunProgress
from .results import Result
from .run_settings import RunSettings, hash_vectors
from .runs import RESULT_KEYS, Run, get_workplace, hash_config, make_run_config, run_one
from .subsets import find_further, find_splits, read_docs
from .variants import get_score

logger = logging.getLogger("spacy_elmo")

_THREADS = "OMP_NUM_THREADS"
# Seconds between two reads of the progress queue.
_INTERVAL = 0.2


def _ignore(progress: RunProgress) -> None:
    """The default of `report`."""


def run_all(
    runs: Sequence[Run],
    settings: RunSettings,
    output: Path,
    *,
    cache: Optional[Path] = None,
    n_jobs: int = 1,
    gpu_id: int = NO_GPU,
    report: OnProgress = _ignore,
) -> Generator[Result, None, None]:
    """Make the runs that have no result yet. All settings are checked before the first.

    runs (Sequence[Run]): what to run.
    settings (RunSettings): for all.
    output (Path): folder, of which each run gets a file NAME.json.
    cache (Optional[Path]): folder for the biLM's layers, which all runs of a corpus share.
    n_jobs (int): runs at once, each with its share of the processors.
    gpu_id (int): a GPU to train on, which all share; -1 for the processors.
    report (Callable[[RunProgress], None]): called with the progress of each run.
    YIELDS (Dict[str, Any]): result of each run, existing ones first.
    RAISES (ValueError): EL061 for a component without a tok2vec, EL065 for other settings,
        EL066 for a missing corpus, EL161 for an unknown language, EL143 if another process
        makes runs there, EL146 if the process of a run was killed, EL148 for a corpus that
        cannot be read, EL151 for a seed that is none, EL325 for a GPU that is not there.
    RAISES (OSError): if the folder cannot be written.
    """
    _check(runs, settings)
    check_gpu(gpu_id)
    output.mkdir(parents=True, exist_ok=True)
    with lock_folder(output, wait=False):
        settings.fix(output)
        done = [_read_done(output / f"{run.name}.json", run, settings) for run in runs]
        yield from (result for result in done if result is not None)
        missing = [run for run, result in zip(runs, done) if result is None]
        if missing:
            yield from _run_missing(missing, settings, output, cache, n_jobs, gpu_id, report)


def _check(runs: Sequence[Run], settings: RunSettings) -> None:
    get_score(settings.component)
    require_language(settings.lang)
    if settings.vectors:
        hash_vectors(settings.vectors)
    for run in runs:
        require_seed(run.seed)
    for run in {run.variant.name: run for run in runs}.values():
        make_run_config(run, settings)
    corpus = Path(settings.corpus)
    for path in (*find_splits(corpus).values(), *find_further(corpus).values()):
        read_docs(path)


def _read_done(path: Path, run: Run, settings: RunSettings) -> Optional[Result]:
    """RETURNS (Optional[Result]): Of a run that was made, undamaged, with the config of now."""
    if not path.exists():
        return None
    try:
        result = read_checked_json(path)
    except ValueError:
        result = {}
    wanted = {
        "variant": run.variant.name,
        "share": run.share,
        "seed": run.seed,
        "config": hash_config(run, settings),
    }
    is_whole = set(result) - {"further", "gpu"} == RESULT_KEYS
    if is_whole and all(result[key] == value for key, value in wanted.items()):
        return result
    logger.warning(Warnings.WL023.format(path=path))
    return None


def _run_missing(
    runs: List[Run],
    settings: RunSettings,
    output: Path,
    cache: Optional[Path],
    n_jobs: int,
    gpu_id: int,
    report: OnProgress,
) -> Iterator[Result]:
    n_jobs = min(n_jobs, len(runs))
    n_threads = max(1, _count_processors() // n_jobs)
    # Spawned: torch's threads do not survive a fork.
    context = get_context("spawn")
    queue: Queue[RunProgress] = context.Queue()
    stopped, stop = context.Pipe(duplex=False)
    arguments = n_threads, gpu_id, queue, stopped
    with (
        _limited_threads(n_threads),
        ProcessPoolExecutor(n_jobs, context, _set_up_job, arguments) as pool,
    ):
        try:
            pending = {pool.submit(_run_job, run, settings, output, cache) for run in runs}
            yield from _follow(pending, queue, report)
        except BaseException as err:
            # Runs end at once: results are written whole or not at all.
            stop.close()
            if isinstance(err, BrokenProcessPool):
                raise ValueError(Errors.EL146) from err
            raise
        finally:
            pool.shutdown(cancel_futures=True)
            stop.close()
            stopped.close()
            for run in runs:
                shutil.rmtree(get_workplace(output, run), ignore_errors=True)


def _count_processors() -> int:
    """RETURNS (int): Those that this process may use, where the system can tell."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _follow(
    pending: Set["Future[Result]"], queue: "Queue[RunProgress]", report: OnProgress
) -> Iterator[Result]:
    while pending:
        done, pending = wait(pending, _INTERVAL, FIRST_COMPLETED)
        try:
            while True:
                report(queue.get_nowait())
        except Empty:
            pass
        for future in done:
            yield future.result()


@contextmanager
def _limited_threads(n_threads: int) -> Iterator[None]:
    """Limit the threads of NumPy's products in child processes, which read this at their start."""
    previous = os.environ.get(_THREADS)
    os.environ[_THREADS] = str(n_threads)
    try:
        yield
    finally:
        del os.environ[_THREADS]
        if previous is not None:
            os.environ[_THREADS] = previous


_report: OnProgress = _ignore


def _set_up_job(
    n_threads: int, gpu_id: int, queue: "Queue[RunProgress]", stopped: Connection
) -> None:
    global _report
    end_with_parent(stopped)
    # Progress that nobody reads any more must not delay the end.
    queue.cancel_join_thread()
    _report = queue.put
    torch.set_num_threads(n_threads)
    if gpu_id != NO_GPU:
        require_gpu(gpu_id)
    else:
        # NumPy's own products are faster than Thinc's default ones: benchmarks/tagger_epoch.py.
        set_current_ops(NumpyOps(use_blis=False))


def _run_job(run: Run, settings: RunSettings, output: Path, cache: Optional[Path]) -> Result:
    result = run_one(run, settings, output, cache, _report)
    # The next run needs what this one had.
    release_memory()
    return result
