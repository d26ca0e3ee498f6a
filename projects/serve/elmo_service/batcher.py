"""Requests that wait together are read together."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from .answers import Reader
from .limits import Limits
from .metrics import Metrics
from .refusals import FAILED, FULL, STOPPING, TOO_LATE, Refusal
from .unread import Share
from .worker import Work

logger = logging.getLogger(__name__)

# A request takes a few turns of the event loop until it waits here; a turn takes 20 microseconds.
_QUIET_TURNS = 10

Run = Callable[[Sequence[Work]], list["bytes | Refusal"]]


@dataclass(eq=False)
class Job:
    """A request that was accepted. answer (Future[bytes]): cancelled if nobody waits for it."""

    work: Work
    answer: "asyncio.Future[bytes]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Batcher:
    """A bounded queue before one worker thread.

    No request waits for others to come: while the worker reads a batch, what arrives becomes the
    next one. So an idle server answers at once, and batches grow with the load. The pipeline is
    the thread's alone, since a memory zone is its whole vocab's.

    run (Run): reads a batch, in the thread.
    """

    def __init__(self, run: Run, limits: Limits, metrics: Metrics) -> None:
        self.limits = limits
        self.metrics = metrics
        self.is_stopping = False
        self._run = run
        # In the order of arrival; a job leaves it when it is read, or when nobody waits for it.
        self._waiting: dict[Job, None] = {}
        self._n_texts = 0
        self._busy_since: float | None = None

    async def __aenter__(self) -> "Batcher":
        self._executor = ThreadPoolExecutor(1, "pipeline")
        self._has_work = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._task = asyncio.create_task(self._read_batches())
        return self

    async def __aexit__(self, *args: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._executor.shutdown(wait=False, cancel_futures=True)

    @property
    def is_full(self) -> bool:
        """No text more may wait."""
        return self._n_texts >= self.limits.queue_texts

    @property
    def is_busy(self) -> bool:
        """The thread reads a batch."""
        return self._busy_since is not None

    @property
    def is_stuck(self) -> bool:
        """A pass takes so long that it will not end."""
        since = self._busy_since
        return since is not None and time.monotonic() - since > self.limits.stuck_seconds

    async def submit(self, texts: list[str], reader: Reader, share: Share) -> bytes:
        """Wait for the answer of a request. A caller that stops waiting withdraws the request.

        share (Share): holds the answer's bytes.
        RETURNS (bytes): what the reader made of the docs.
        RAISES (Refusal): EL264 if the queue is full, EL265 if the server stops, EL266 if time
            is over; EL262, EL269, EL310 and EL311 of the worker.
        """
        if self.is_stopping:
            raise Refusal(STOPPING)
        # A request of many texts may wait alone, whatever the limit.
        if self._n_texts and self._n_texts + len(texts) > self.limits.queue_texts:
            raise Refusal(FULL, n=self._n_texts, limit=self.limits.queue_texts)
        job = Job(Work(texts, reader, share))
        self._add(job)
        try:
            return await asyncio.wait_for(job.answer, self.limits.seconds)
        except asyncio.TimeoutError:
            raise Refusal(TOO_LATE, limit=self.limits.seconds) from None
        finally:
            if job.answer.cancelled():
                self.metrics.dropped.inc(len(texts))
            self._remove(job)

    async def drain(self) -> None:
        """Accept nothing more, and wait until all that was accepted has its answer."""
        self.is_stopping = True
        await self._is_idle.wait()

    def _add(self, job: Job) -> None:
        self._waiting[job] = None
        self._count(len(job.work.texts))
        self._is_idle.clear()
        self._has_work.set()

    def _remove(self, job: Job) -> None:
        if job in self._waiting:
            del self._waiting[job]
            self._count(-len(job.work.texts))

    def _count(self, n_texts: int) -> None:
        self._n_texts += n_texts
        self.metrics.waiting.set(self._n_texts)

    def _take_batch(self) -> list[Job]:
        """RETURNS (list[Job]): the first ones, at least one, that fit into a batch."""
        batch: list[Job] = []
        n_texts = n_chars = 0
        for job in self._waiting:
            n_texts += len(job.work.texts)
            n_chars += sum(map(len, job.work.texts))
            is_over = n_texts > self.limits.batch_texts or n_chars > self.limits.batch_chars
            if batch and is_over:
                break
            batch.append(job)
        for job in batch:
            self._remove(job)
        return batch

    async def _read_batches(self) -> None:
        while True:
            if not self._waiting:
                self._is_idle.set()
                self._has_work.clear()
            await self._has_work.wait()
            await self._let_more_come()
            # No name for it: it would keep the last answers while nothing comes.
            await self._read_batch(self._take_batch())

    async def _let_more_come(self) -> None:
        """Let requests that are here in part be read and queued, as long as more follow: in a pass,
        the thread leaves the event loop little time for it."""
        n_texts, n_quiet = self._n_texts, 0
        while n_quiet < _QUIET_TURNS and self._n_texts < self.limits.batch_texts:
            await asyncio.sleep(0)
            n_quiet = n_quiet + 1 if self._n_texts <= n_texts else 0
            n_texts = self._n_texts

    async def _read_batch(self, batch: list[Job]) -> None:
        if not batch:
            return
        works = [job.work for job in batch]
        started = self._busy_since = time.monotonic()
        loop = asyncio.get_running_loop()
        try:
            results = await loop.run_in_executor(self._executor, self._run, works)
        except Exception:
            # The worker handles what texts do; the server has to go on after anything else.
            logger.exception("A batch failed")
            results = [Refusal(FAILED) for _ in batch]
        self._busy_since = None
        self.metrics.batch_seconds.observe(time.monotonic() - started)
        self.metrics.batch_texts.observe(sum(len(work.texts) for work in works))
        for job, result in zip(batch, results):
            if not job.answer.done():
                set_answer(job.answer, result)


def set_answer(answer: "asyncio.Future[bytes]", result: bytes | Refusal) -> None:
    """Wake up whoever waits for it."""
    if isinstance(result, Refusal):
        answer.set_exception(result)
    else:
        answer.set_result(result)
