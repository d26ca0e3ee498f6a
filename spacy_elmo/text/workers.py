"""Cut chunks in other processes, in the order they came."""

import multiprocessing
import signal
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, Callable, Deque, Iterator, List, Optional, Tuple

from ..util.child_processes import end_with_parent
from .cutting import Cutter
from .texts import Chunk

# Pending chunks for each worker: enough that none has to wait, few enough for memory.
_CHUNKS_AHEAD = 8

_cutter: Optional[Cutter] = None


def cut_all(
    chunks: Iterator[Tuple[Chunk, Any]],
    make_cutter: Callable[[], Cutter],
    n_workers: int,
) -> Iterator[Tuple[List[List[str]], Any]]:
    """Cut a stream of chunks. The result does not depend on the number of workers.

    chunks (Iterator[Tuple[Chunk, Any]]): chunks, each with something to hand on.
    make_cutter (Callable[[], Cutter]): makes what cuts them; picklable.
    n_workers (int): processes; 0 to do it in this one.
    YIELDS (Tuple[List[List[str]], Any]): the sequences of a chunk, and what came with it.
    """
    if n_workers == 0:
        cutter = make_cutter()
        for chunk, position in chunks:
            yield cutter(chunk.texts, chunk.number), position
        return
    # Spawned: torch's threads, and the parent's memory, stay out of the workers.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_workers, context, _start, (make_cutter,)) as pool:
        pending: Deque[Tuple[Future[List[List[str]]], Any]] = deque()
        try:
            for chunk, position in chunks:
                pending.append((pool.submit(_cut, chunk), position))
                if len(pending) >= n_workers * _CHUNKS_AHEAD:
                    future, earlier = pending.popleft()
                    yield future.result(), earlier
            for future, position in pending:
                yield future.result(), position
        finally:
            for future, _ in pending:
                future.cancel()


def _start(make_cutter: Callable[[], Cutter]) -> None:
    global _cutter
    # Without this, the workers of a trainer that is killed would wait for ever.
    end_with_parent()
    # SIGTERM reaches the whole process group, as Ctrl-C does: the trainer decides when to end.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _cutter = make_cutter()


def _cut(chunk: Chunk) -> List[List[str]]:
    assert _cutter is not None
    return _cutter(chunk.texts, chunk.number)
