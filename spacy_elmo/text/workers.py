"""Cut chunks of text in other processes, in the order they came."""

import signal
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.util import Finalize
from queue import SimpleQueue
from typing import Any, Callable, Deque, Iterator, List, NamedTuple, Optional, Tuple

from ..errors import Errors
from ..utils import end_with_parent
from .cutting import Cutter

# Pending chunks for each worker: enough that none has to wait, few enough for memory.
_CHUNKS_AHEAD = 8
# To wait for a process that closed its pipe.
_SECONDS = 5.0
Sequences = List[List[str]]


class Chunk(NamedTuple):
    """Texts that follow each other in a file.

    texts (List[str]): lines or documents.
    number (int): how many chunks came before, over all epochs.
    """

    texts: List[str]
    number: int


def cut_all(
    chunks: Iterator[Tuple[Chunk, Any]],
    make_cutter: Callable[[], Cutter],
    n_workers: int,
) -> Iterator[Tuple[Sequences, Any]]:
    """Cut a stream of chunks. The result does not depend on the number of workers.

    chunks (Iterator[Tuple[Chunk, Any]]): chunks, each with something to hand on.
    make_cutter (Callable[[], Cutter]): picklable.
    n_workers (int): processes; 0 to cut in this one.
    YIELDS (Tuple[List[List[str]], Any]): the sequences of a chunk, and what came with it.
    RAISES (ValueError): EL328 if a process ends.
    """
    if n_workers == 0:
        cutter = make_cutter()
        for chunk, position in chunks:
            yield cutter(chunk.texts, chunk.number), position
        return
    workers = [_Worker(make_cutter) for _ in range(n_workers)]
    idle: SimpleQueue[_Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def cut(chunk: Chunk) -> Sequences:
        worker = idle.get()
        try:
            return worker.cut(chunk)
        finally:
            idle.put(worker)

    pending: Deque[Tuple[Future[Sequences], Any]] = deque()
    try:
        with ThreadPoolExecutor(n_workers) as pool:
            try:
                for chunk, position in chunks:
                    pending.append((pool.submit(cut, chunk), position))
                    if len(pending) >= n_workers * _CHUNKS_AHEAD:
                        future, earlier = pending.popleft()
                        yield future.result(), earlier
                for future, position in pending:
                    yield future.result(), position
            finally:
                for future, _ in pending:
                    future.cancel()
    finally:
        for worker in workers:
            worker.close()


class _Worker:
    """A process with its own pipe: that of a pool, which all processes share, would stay open if
    one of them were killed in the middle of an answer."""

    def __init__(self, make_cutter: Callable[[], Cutter]) -> None:
        # Spawned, without torch's threads and the parent's memory.
        context = get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_work, args=(other, make_cutter))
        self._process.start()
        # Now closed when the process ends.
        other.close()
        # At its own end, Python waits for the process, which waits for the pipe.
        Finalize(self, self._connection.close, exitpriority=1)

    def cut(self, chunk: Chunk) -> Sequences:
        try:
            self._connection.send(chunk)
            sequences, error = self._connection.recv()
        except (EOFError, OSError) as err:
            self._process.join(_SECONDS)
            raise ValueError(Errors.EL328.format(code=self._process.exitcode)) from err
        if error is not None:
            raise error
        return sequences

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join()


def _work(connection: Connection, make_cutter: Callable[[], Cutter]) -> None:
    end_with_parent()
    # Like Ctrl-C, SIGTERM may be sent to the whole process group: the trainer decides when to end.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    cutter: Optional[Cutter] = None
    # The other end is closed.
    with suppress(EOFError, OSError):
        while True:
            chunk: Chunk = connection.recv()
            answer: Tuple[Optional[Sequences], Optional[Exception]]
            try:
                cutter = cutter or make_cutter()
                answer = cutter(chunk.texts, chunk.number), None
            except Exception as err:
                answer = None, err
            connection.send(answer)
