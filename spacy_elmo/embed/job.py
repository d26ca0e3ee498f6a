"""Embed files. A shard depends only on its input, so shards that exist are not computed again.

A shard `part-000000.parquet` is renamed into its place when it is whole. `_part-000000.json` with
its counts and rejects follows, and says that it is done. At the end, these become the manifest.
"""

import json
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import asdict
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Callable, Dict, Generator, Iterator, List, NamedTuple, Optional, Set, Tuple

from spacy.attrs import IS_SPACE
from spacy.tokens import Doc
from thinc.api import require_gpu

from ..errors import Errors
from ..files import (
    atomic_file,
    digest_file,
    lock_folder,
    read_json_object,
    require_no_others,
    write_json,
)
from ..layers.torch_shim import check_gpu
from ..text.cutting import make_doc
from ..utils import end_with_parent, require_known, show_reason, show_value, split_by_size
from .output import (
    COUNTS,
    JOB,
    MANIFEST,
    REJECTS,
    VERSION,
    is_job_folder,
    read_manifest,
    require_arrow,
)
from .pipeline import FORMATS, EmbedPipeline, EmbedSettings, load_embed_pipeline
from .readers import BadRecord, Record, Task, check_inputs, find_inputs, plan_tasks
from .rows import Block, make_block, open_shard

# Characters of a rejected record that are kept with its reason.
_N_KEPT = 1000
KILLED = "Use fewer processes or lower `--batch-chars`, and add `--resume`"
# Settings that say where the pipeline lies. What it is, its description says.
_PLACES = ("pipeline", "weights")


class JobProgress(NamedTuple):
    """Bytes of the input, as it is stored, read so far and in all (0 for the standard input), and
    what was done since the start or resume."""

    n_bytes: int
    total: int
    n_tokens: int = 0
    n_rejects: int = 0


# A shard, see `read_manifest`; and the bytes of the input up to its end.
Result = Tuple[Dict[str, Any], int]
# Computes tasks in any order.
Engine = Callable[[Iterator[Task], "ShardWorker"], Generator[Result, None, None]]


def embed_files(
    text: str,
    output: Path,
    settings: EmbedSettings,
    engine: Engine,
    *,
    resume: bool = False,
    input_format: str = "txt",
    gpu: bool = False,
) -> Generator[JobProgress, None, None]:
    """Embed a file, folder, glob or the standard input ("-"), and write the vectors to a folder.
    Yields at the start and after each shard; a job that raises can be resumed."""
    settings = settings.resolve()
    require_known("--input-format", input_format, ("txt", "jsonl"))
    if settings.format != "spacy":
        require_arrow(output)
    if not is_job_folder(output):
        # A killed process may have left the beginning of _job.json.
        require_no_others(output, [path.name for path in output.glob("_job.*")])
    elif not resume:
        state = "finished" if (output / MANIFEST).exists() else "unfinished"
        raise ValueError(Errors.EL243.format(path=output, state=state))
    files = find_inputs(text, output)
    check_inputs(files, settings)
    output.mkdir(parents=True, exist_ok=True)
    with lock_folder(output):
        worker = ShardWorker(settings, output, gpu=gpu)
        worker.description = worker.load().describe()
        # In JSON's types, which have no tuples.
        content = {"version": VERSION, "settings": asdict(settings), "pipeline": worker.description}
        job = json.loads(json.dumps(content))
        is_finished = (output / MANIFEST).exists()
        if is_finished:
            manifest = read_manifest(output)
            _require_same_job(output, manifest, job)
            done = {number: shard for number, shard in enumerate(manifest["shards"])}
        elif (output / JOB).exists():
            _require_same_job(output, read_json_object(output / JOB), job)
            done = _read_done(output)
        else:
            write_json(output / JOB, job)
            done = {}
        # Temporary files of a killed process.
        for path in output.glob("*.partial.*"):
            path.unlink(missing_ok=True)
        total = sum(path.stat().st_size for path in files if path.exists())
        progress = JobProgress(0, total)
        yield progress
        tasks = plan_tasks(files, settings, input_format)
        new = _list_new(tasks, output, done, is_finished)
        with closing(engine(new, worker)) as results:
            for shard, n_bytes in results:
                progress = JobProgress(
                    max(progress.n_bytes, n_bytes),
                    total,
                    progress.n_tokens + shard["n_tokens"],
                    progress.n_rejects + shard["n_rejects"],
                )
                yield progress
        if done:
            raise _refuse_resume(output, "its input is shorter than it was")
        if not is_finished:
            _finish(output, job, text)
        # Only an unfinished job needs these; a killed actor leaves temporary files.
        for path in (*output.glob("_part-*.json"), *output.glob("*.partial.*"), output / JOB):
            path.unlink(missing_ok=True)


def _require_same_job(output: Path, before: Dict[str, Any], now: Dict[str, Any]) -> None:
    if before.get("version") != VERSION:
        raise _refuse_resume(output, "another version of spacy-elmo started it")
    for part in ("settings", "pipeline"):
        for key, value in now[part].items():
            old = before[part].get(key)
            if old != value and not (part == "settings" and key in _PLACES):
                problem = f"it was started with {key} = {show_value(old)}, not {show_value(value)}"
                raise _refuse_resume(output, problem)


def _refuse_resume(output: Path, problem: str) -> ValueError:
    return ValueError(Errors.EL245.format(path=output, problem=problem))


def _read_done(output: Path) -> Dict[int, Dict[str, Any]]:
    """Number -> shard, of the shards that exist."""
    done = {}
    for path in output.glob("_part-*.json"):
        shard = read_json_object(path)
        if (output / shard["shard"]).exists():
            # Of a bad corpus, the rejects would fill the memory.
            del shard["rejects"]
            done[int(path.stem.rpartition("-")[2])] = shard
    return done


def _list_new(
    tasks: Iterator[Task], output: Path, done: Dict[int, Dict[str, Any]], is_finished: bool
) -> Iterator[Task]:
    """Yield the tasks that are not done; the others are removed from `done`."""
    for task in tasks:
        shard = done.pop(task.number, None)
        if shard is None and not is_finished:
            yield task
            continue
        if shard is None or shard["input"] != task.digest():
            source, number = task.records[0][:2]
            problem = f"its input has changed, at or after record {number} of '{source}'"
            raise _refuse_resume(output, problem)
        if not (output / shard["shard"]).exists():
            raise _refuse_resume(output, f"its shard {shard['shard']} is missing")


def _finish(output: Path, job: Dict[str, Any], text: str) -> None:
    """Write rejects and manifest."""
    shards: List[Dict[str, Any]] = []
    reason = ""
    with atomic_file(output / REJECTS) as temporary, temporary.open("wb") as file:
        for path in sorted(output.glob("_part-*.json")):
            shard = read_json_object(path)
            for reject in shard.pop("rejects"):
                reason = reason or reject["reason"]
                file.write(b"%s\n" % json.dumps(reject).encode("ascii"))
            shards.append(shard)
    if not reason:
        (output / REJECTS).unlink()
    totals = {key: sum(shard[key] for shard in shards) for key in COUNTS}
    if not shards:
        # The folder is free for the right input.
        (output / JOB).unlink()
        raise ValueError(Errors.EL248.format(reason=f"the input '{text}' is empty"))
    if not totals["n_rows"]:
        reason = f"{reason} (rejected records: {totals['n_rejects']}, see '{output / REJECTS}')"
        raise ValueError(Errors.EL248.format(reason=reason))
    write_json(output / MANIFEST, {**job, **totals, "shards": shards})


class ShardWorker:
    """Computes shards, in any process. `description` is that of the job's pipeline."""

    def __init__(
        self,
        settings: EmbedSettings,
        output: Path,
        *,
        gpu: bool = False,
        description: Optional[Dict[str, Any]] = None,
    ) -> None:
        self.settings = settings
        self.output = output
        self.gpu = gpu
        self.description = description
        self._pipeline: Optional[EmbedPipeline] = None

    def load(self) -> EmbedPipeline:
        """Load the pipeline, unless it is loaded."""
        if self._pipeline is None:
            if self.gpu:
                # The first that this process sees: clusters show each process its own.
                check_gpu(0)
                require_gpu(0)
            self._pipeline = load_embed_pipeline(self.settings)
        return self._pipeline

    def __call__(self, task: Task) -> Result:
        """Write a shard: when this returns, it is whole and in its place."""
        pipeline = self.load()
        rejects = [_make_reject(r, r.problem) for r in task.records if r.problem]
        records = [record for record in task.records if not record.problem]
        counts = dict.fromkeys(("n_records", "n_rows", "n_tokens"), 0)
        errors: List[str] = []
        path = self.output / f"part-{task.number:06}{FORMATS[self.settings.format]}"
        with atomic_file(path) as temporary:
            with open_shard(temporary, pipeline) as write:
                most = self.settings.batch_chars
                for batch in split_by_size(records, lambda record: len(record.text), most):
                    for block in _embed(pipeline, batch, rejects, errors):
                        write(block)
                        for key in counts:
                            counts[key] += getattr(block, key)
            if len(errors) > 1 and not counts["n_records"]:
                raise ValueError(Errors.EL297.format(n=len(errors), error=errors[0]))
            size, digest = temporary.stat().st_size, digest_file(temporary)
        rejects.sort(key=lambda reject: (reject["source"], reject["record"]))
        shard = {
            "shard": path.name,
            "size": size,
            "digest": digest,
            "input": task.digest(),
            **counts,
            "n_rejects": len(rejects),
        }
        write_json(self.output / f"_part-{task.number:06}.json", {**shard, "rejects": rejects})
        return shard, task.n_bytes


def _embed(
    pipeline: EmbedPipeline, records: List[Record], rejects: List[Dict[str, Any]], errors: List[str]
) -> Iterator[Block]:
    """Embed a batch; after an error each record alone. Those that fail alone go to `rejects`, and
    what a component raised for them to `errors`."""
    reason = ""
    # At its end, the words of this batch leave the vocab, which would grow without end.
    with pipeline.nlp.memory_zone():
        try:
            block, bad = _compute(pipeline, records)
        # A component can raise anything.
        except Exception as err:
            is_bad = isinstance(err, BadRecord)
            reason = str(err) if is_bad else _show_error(err)
    if not reason:
        rejects += bad
        if block is not None:
            yield block
    elif len(records) > 1:
        for record in records:
            yield from _embed(pipeline, [record], rejects, errors)
    else:
        rejects.append(_make_reject(records[0], reason))
        if not is_bad:
            errors.append(reason)


def _compute(
    pipeline: EmbedPipeline, records: List[Record]
) -> Tuple[Optional[Block], List[Dict[str, Any]]]:
    """Rows, if there are any, and rejects."""
    nlp = pipeline.nlp
    good: List[Record] = []
    docs: List[Doc] = []
    rejects: List[Dict[str, Any]] = []
    for record in records:
        if record.doc is None and len(record.text) > nlp.max_length:
            reason = f"it has more than {nlp.max_length:,} characters"
            rejects.append(_make_reject(record, reason))
            continue
        if record.doc is None:
            doc = make_doc(nlp.make_doc, record.text)
        else:
            doc = Doc(nlp.vocab).from_bytes(record.doc)
        if (doc.to_array(IS_SPACE) == 0).any():
            good.append(record)
            docs.append(doc)
        else:
            rejects.append(_make_reject(record, "it has no words"))
    block = make_block(pipeline, good, list(nlp.pipe(docs))) if docs else None
    return block, rejects


def _make_reject(record: Record, reason: str) -> Dict[str, Any]:
    return {
        "source": record.source,
        "record": record.number,
        "id": record.id,
        "reason": reason,
        "text": record.text[:_N_KEPT],
    }


# ---- processes of this machine

_worker: Optional[ShardWorker] = None


def run_local(
    tasks: Iterator[Task], worker: ShardWorker, *, n_processes: int
) -> Generator[Result, None, None]:
    """An engine: compute tasks in this process, or in several child processes."""
    if n_processes == 1:
        yield from map(worker, tasks)
        return
    # Spawned: torch's threads do not survive a fork.
    context = get_context("spawn")
    # Child processes end when it is closed: what they compute after an error is of no use.
    ours, theirs = context.Pipe(duplex=False)
    arguments = (ours, worker.settings, worker.output, worker.gpu)
    pool = ProcessPoolExecutor(n_processes, context, _start_process, arguments)
    waiting: Set[Future[Result]] = set()
    try:
        for task in tasks:
            waiting.add(pool.submit(_compute_task, task))
            if len(waiting) >= 2 * n_processes:
                finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in finished)
        yield from (future.result() for future in waiting)
    except BrokenProcessPool as err:
        raise ValueError(Errors.EL251.format(remedy=KILLED)) from err
    finally:
        theirs.close()
        pool.shutdown(cancel_futures=True)
        ours.close()


def _start_process(stop: Connection, settings: EmbedSettings, output: Path, gpu: bool) -> None:
    global _worker
    end_with_parent(stop)
    _worker = ShardWorker(settings, output, gpu=gpu)


def _compute_task(task: Task) -> Result:
    assert _worker is not None
    return _worker(task)


def _show_error(error: BaseException) -> str:
    """Write an error with its class, unless its text begins with a code in brackets."""
    reason = show_reason(error)
    name = type(error).__name__
    return reason if reason.startswith("[") or reason == name else f"{name}: {reason}"
