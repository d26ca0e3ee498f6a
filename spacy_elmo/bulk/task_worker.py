"""`TaskWorker`: computes tasks and writes their shards, in whatever process."""

import gc
import os
import platform
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

import spacy

from ..errors import Errors
from ..util.atomic import atomic_file
from ..util.digests import digest_file
from ..util.memory import is_out_of_memory
from ..util.showing import show_reason, show_value
from .bulk_pipeline import BulkPipeline, load_bulk_pipeline
from .bulk_settings import BulkSettings
from .planning import cut_batches
from .records import Record, Result, Task, make_reject
from .rows import make_rows
from .shard_writer import Shard, open_shard

Reject = Dict[str, Any]
_NO_MEMORY = "it does not fit into memory, even alone"


class TaskWorker:
    """Compute tasks.

    settings (BulkSettings): of the job.
    output (Path): its folder.
    gpu (bool): whether to compute on a GPU.
    description (Optional[Dict[str, Any]]): of the job's pipeline, see `BulkPipeline.describe`: no
        other one is accepted; None in the process that describes the job.
    """

    def __init__(
        self,
        settings: BulkSettings,
        output: Path,
        *,
        gpu: bool = False,
        description: Optional[Dict[str, Any]] = None,
    ) -> None:
        self.settings = settings
        self.output = output
        self.gpu = gpu
        self.description = description
        self._pipeline: Optional[BulkPipeline] = None

    def load(self) -> BulkPipeline:
        """RETURNS (BulkPipeline): of the job. RAISES (ValueError): EL295 if it is not the one that
        the job describes; else as `load_bulk_pipeline`; spaCy's if there is no GPU."""
        if self._pipeline is None:
            if self.gpu:
                spacy.require_gpu()
            pipeline = load_bulk_pipeline(self.settings)
            if self.description is not None:
                _require_same_pipeline(pipeline, self.description)
            self._pipeline = pipeline
        return self._pipeline

    def __call__(self, task: Task) -> Result:
        """Write a shard.

        task (Task): what to embed.
        RETURNS (Result): after the shard is whole and in its place.
        RAISES (OSError): if it cannot be written; there is no part of it then.
        """
        pipeline = self.load()
        path = self.output / self.settings.name_shard(task.number)
        rejects = [make_reject(r, r.problem) for r in task.records if r.problem]
        records = [record for record in task.records if not record.problem]
        with atomic_file(path) as temporary:
            with open_shard(temporary, pipeline) as shard:
                job = _Job(pipeline, shard)
                for batch in self._cut(task, records):
                    rejects += job.embed(batch)
            size, digest = temporary.stat().st_size, digest_file(temporary)
        counts = (len(task.records) - len(rejects), job.n_rows, job.n_tokens)
        rejects.sort(key=lambda reject: (reject["source"], reject["record"]))
        return Result(task.number, task.end, path.name, size, digest, *counts, rejects)

    def _cut(self, task: Task, records: List[Record]) -> Iterator[List[Record]]:
        if not task.is_careful:
            yield from cut_batches(records, self.settings.batch_chars)
            return
        marker = name_marker(self.output, task.number)
        for i, record in enumerate(task.records):
            if not record.problem:
                # Whoever finds it knows which record this process was killed by.
                marker.write_text(str(i))
                yield [record]
        marker.unlink(missing_ok=True)


def _require_same_pipeline(pipeline: BulkPipeline, expected: Dict[str, Any]) -> None:
    """RAISES (ValueError): EL295 if it is not as described."""
    for key, value in pipeline.describe().items():
        if value != expected.get(key):
            where = {"node": platform.node(), "process": os.getpid()}
            names = {"pipeline": pipeline.settings.pipeline, "weights": pipeline.settings.weights}
            shown = {"other": show_value(value), "expected": show_value(expected.get(key))}
            raise ValueError(Errors.EL295.format(key=key, **where, **names, **shown))


def name_marker(output: Path, number: int) -> Path:
    """output (Path): folder of a job. number (int): of a task. RETURNS (Path): the file that says
    which of its records is embedded, while records are embedded one by one."""
    return output / f".record-{number:06}"


class _Job:
    """Embed batches, halved where they do not fit into memory, or one of their records is bad."""

    def __init__(self, pipeline: BulkPipeline, shard: Shard) -> None:
        self.pipeline = pipeline
        self.shard = shard
        self.n_rows = 0
        self.n_tokens = 0

    def embed(self, records: List[Record]) -> List[Reject]:
        """records (List[Record]): a batch. RETURNS (List[Reject]): those that were set aside."""
        reason = self._try(records)
        if reason is None:
            return []
        if len(records) == 1:
            return [make_reject(records[0], reason)]
        # Not in the handler of the error, which keeps the memory of the failed attempt.
        gc.collect()
        half = len(records) // 2
        return self.embed(records[:half]) + self.embed(records[half:])

    def _try(self, records: List[Record]) -> Optional[str]:
        """RETURNS (Optional[str]): What went wrong. Nothing was written then."""
        # Words of this batch leave the vocab with it, which would grow without end.
        with self.pipeline.nlp.memory_zone():
            try:
                docs = self.pipeline.make_docs(records)
                rows = make_rows(self.pipeline, records, docs)
                content = self.shard.prepare(records, docs, rows)
            # A component of someone's own can fail in any way.
            except Exception as err:
                return _get_reason(err)
            self.shard.write(content)
        self.n_rows += len(docs) if self.pipeline.settings.format == "spacy" else rows.n_rows
        self.n_tokens += rows.n_tokens
        return None


def _get_reason(err: Exception) -> str:
    """RETURNS (str): Why a record is set aside. RAISES (Exception): the same, if it tells nothing
    of the records: the disk is full, the GPU is gone."""
    if is_out_of_memory(err):
        return _NO_MEMORY
    if isinstance(err, (OSError, RuntimeError)):
        raise err
    return show_reason(err)
