"""Cut chunks in other processes, in the order they came."""

import signal
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.util import Finalize
from queue import SimpleQueue
from typing import Any, Callable, Deque, Iterator, List, Optional, Tuple

from ..errors import Errors
from ..utils import end_with_parent
from .cutting import Cutter
from .texts import Chunk

# Pending chunks for each worker: enough that none has to wait, few enough for memory.
_CHUNKS_AHEAD = 8
# For a process whose pipe is closed to end.
_SECONDS = 5.0
Sequences = List[List[str]]


def cut_all(
    chunks: Iterator[Tuple[Chunk, Any]],
    make_cutter: Callable[[], Cutter],
    n_workers: int,
) -> Iterator[Tuple[Sequences, Any]]:
    """Cut a stream of chunks. The result does not depend on the number of workers.

    chunks (Iterator[Tuple[Chunk, Any]]): chunks, each with something to hand on.
    make_cutter (Callable[[], Cutter]): makes what cuts them; picklable.
    n_workers (int): processes; 0 to do it in this one.
    YIELDS (Tuple[List[List[str]], Any]): the sequences of a chunk, and what came with it.
    RAISES (ValueError): EL328 if a process is killed, EL337 if it cannot start.
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
    """A process with a pipe of its own: a pool's, which all share, is open for ever after one of
    them was killed in the middle of an answer.

    make_cutter (Callable[[], Cutter]): see `cut_all`.
    """

    def __init__(self, make_cutter: Callable[[], Cutter]) -> None:
        # Spawned: torch's threads, and the parent's memory, stay out of it.
        context = get_context("spawn")
        self._has_answered = False
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_work, args=(other, make_cutter))
        self._process.start()
        # Only the process holds it now, and with the process it is closed.
        other.close()
        # Where nobody closes it, Python would wait for the process at its own end.
        Finalize(self, self._connection.close, exitpriority=1)

    def cut(self, chunk: Chunk) -> Sequences:
        """chunk (Chunk): texts. RETURNS (List[List[str]]): its sequences. RAISES (ValueError):
        EL328 if the process was killed, EL337 if it could not start; else what the cutter
        raises."""
        try:
            self._connection.send(chunk)
            sequences, error = self._connection.recv()
        except (EOFError, OSError) as err:
            raise ValueError(self._describe_end()) from err
        self._has_answered = True
        if error is not None:
            raise error
        return sequences

    def _describe_end(self) -> str:
        # Spawned, it runs the script of its parent first, which may fail.
        self._process.join(_SECONDS)
        code = self._process.exitcode or 0
        has_failed = code > 0 and not self._has_answered
        return Errors.EL337.format(code=code) if has_failed else Errors.EL328

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join()


def _work(connection: Connection, make_cutter: Callable[[], Cutter]) -> None:
    # Without this, the workers of a trainer that is killed would wait for ever.
    end_with_parent()
    # SIGTERM reaches the whole process group, as Ctrl-C does: the trainer decides when to end.
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
