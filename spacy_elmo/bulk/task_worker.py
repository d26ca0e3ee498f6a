"""`TaskWorker`: computes tasks and writes their shards, in whatever process."""

import gc
import os
import platform
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence

from thinc.api import require_gpu

from ..errors import Errors
from ..files import atomic_file, digest_file, write_file
from ..layers.torch_shim import check_gpu
from ..utils import is_out_of_memory, show_error, show_value
from .bulk_pipeline import BulkPipeline, load_bulk_pipeline
from .bulk_settings import BulkSettings
from .planning import cut_batches
from .record_readers import BadRecord
from .records import Record, Result, Task, make_reject
from .rows import has_words, make_rows
from .shard_writer import Shard, open_shard

Reject = Dict[str, Any]
# Whatever a process sees: clusters show each their own.
_GPU = 0
_NO_MEMORY = "it does not fit into memory, even alone"
# What shows whether the pipeline works, before any record has; and how many records may, too.
_PROBE = Record("", 0, text="Is it you?")
_N_PROBES = 8


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
        self._good: List[Record] = []

    def load(self) -> BulkPipeline:
        """RETURNS (BulkPipeline): of the job. RAISES (ValueError): EL295 if it is not the one that
        the job describes, EL325 if there is no GPU; else as `load_bulk_pipeline`."""
        if self._pipeline is None:
            if self.gpu:
                check_gpu(_GPU)
                require_gpu(_GPU)
            pipeline = load_bulk_pipeline(self.settings)
            if self.description is not None:
                _require_same_pipeline(pipeline, self.description)
            self._pipeline = pipeline
        return self._pipeline

    def __call__(self, task: Task) -> Result:
        """Write a shard.

        task (Task): what to embed.
        RETURNS (Result): after the shard is whole and in its place.
        RAISES (ValueError): EL297 if the pipeline fails whatever it reads.
        RAISES (OSError): if it cannot be written; there is no part of it then.
        """
        pipeline = self.load()
        path = self.output / self.settings.name_shard(task.number)
        rejects = [make_reject(r, r.problem) for r in task.records if r.problem]
        records = [record for record in task.records if not record.problem]
        with atomic_file(path) as temporary:
            with open_shard(temporary, pipeline) as shard:
                job = _Job(pipeline, shard, [*self._good, _PROBE, *records[:_N_PROBES]])
                if task.is_careful:
                    # A process that is killed at a text of ours is killed by no record.
                    write_file(name_marker(self.output, task.number), b"")
                    job.can_embed(_PROBE)
                for batch in self._cut(task, records):
                    rejects += job.embed(batch)
                self._good = job.good or self._good
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
                write_file(marker, str(i).encode())
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
    which of its records is embedded, while records are embedded one by one; empty before the first
    one."""
    return output / f".record-{number:06}"


class _Failure(NamedTuple):
    """reason (str): why nothing came of a batch. is_record (bool): whether a record is surely to
    blame; else it may be the pipeline or the system. bad (Sequence[Record]): which ones, if that
    is known."""

    reason: str
    is_record: bool
    bad: Sequence[Record] = ()


class _Job:
    """Embed batches, halved where they do not fit into memory, or one of their records is bad.

    pipeline (BulkPipeline): that computes the vectors.
    shard (Shard): that gets the rows.
    probes (List[Record]): of which one at least can be embedded, if the pipeline works at all.
    """

    def __init__(self, pipeline: BulkPipeline, shard: Shard, probes: List[Record]) -> None:
        self.pipeline = pipeline
        self.shard = shard
        self.n_rows = 0
        self.n_tokens = 0
        self._probes = probes
        # The last one that was embedded, if any.
        self.good: List[Record] = []

    def embed(self, records: List[Record]) -> List[Reject]:
        """records (List[Record]): a batch. RETURNS (List[Reject]): those that were set aside.
        RAISES (ValueError): EL297 if nothing can be embedded any more."""
        failure = self._try(records)
        if failure is None:
            self.good = records[:1]
            return []
        if failure.bad:
            known = {id(record) for record in failure.bad}
            rest = [record for record in records if id(record) not in known]
            found = [make_reject(record, failure.reason) for record in failure.bad]
            return found + (self.embed(rest) if rest else [])
        if failure.reason == _NO_MEMORY:
            # Not in the handler of the error, which keeps the memory of the failed attempt.
            gc.collect()
        if len(records) == 1:
            if not failure.is_record and not self._works():
                raise ValueError(Errors.EL297.format(error=failure.reason, **_locate(records[0])))
            return [make_reject(records[0], failure.reason)]
        half = len(records) // 2
        return self.embed(records[:half]) + self.embed(records[half:])

    def _works(self) -> bool:
        """RETURNS (bool): Whether another record can be embedded: else the GPU is gone, or a
        component fails with whatever text."""
        return any(self.can_embed(record) for record in self.good or self._probes)

    def can_embed(self, record: Record) -> bool:
        """record (Record): any; nothing of it is written. RETURNS (bool): Whether it works."""
        return self._try([record], is_probe=True) is None

    def _try(self, records: List[Record], *, is_probe: bool = False) -> Optional[_Failure]:
        """RETURNS (Optional[_Failure]): What went wrong. Nothing was written then, nor of a
        probe. RAISES (OSError): if it cannot be written."""
        # Words of this batch leave the vocab with it, which would grow without end.
        with self.pipeline.nlp.memory_zone():
            try:
                docs = self.pipeline.make_docs(records)
                if bad := [record for record, doc in zip(records, docs) if not has_words(doc)]:
                    return _Failure("it has no words", is_record=True, bad=bad)
                docs = self.pipeline.embed(docs)
                rows = make_rows(self.pipeline, records, docs)
                content = self.shard.prepare(records, docs, rows)
            except BadRecord as err:
                return _Failure(str(err), is_record=True)
            # A component of someone's own can fail in any way.
            except Exception as err:
                reason = _NO_MEMORY if is_out_of_memory(err) else show_error(err)
                return _Failure(reason, is_record=False)
            if is_probe:
                return None
            self.shard.write(content)
        self.n_rows += len(docs) if self.pipeline.settings.format == "spacy" else rows.n_rows
        self.n_tokens += rows.n_tokens
        return None


def _locate(record: Record) -> Dict[str, Any]:
    return {"source": record.source, "record": record.number}
