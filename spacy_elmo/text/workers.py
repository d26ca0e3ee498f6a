"""Cut chunks in other processes, in the order they came."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.connection import wait
from typing import Any, Callable, Deque, Iterator, List, Optional, Tuple

from .cutting import Cutter
from .texts import Chunk

# Chunks under way for each worker: enough that none has to wait, few enough to hold.
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
        under_way: Deque[Tuple[Future[List[List[str]]], Any]] = deque()
        try:
            for chunk, position in chunks:
                under_way.append((pool.submit(_cut, chunk), position))
                if len(under_way) >= n_workers * _CHUNKS_AHEAD:
                    future, earlier = under_way.popleft()
                    yield future.result(), earlier
            for future, position in under_way:
                yield future.result(), position
        finally:
            for future, _ in under_way:
                future.cancel()


def _start(make_cutter: Callable[[], Cutter]) -> None:
    global _cutter
    # Ctrl-C and SIGTERM reach the whole group: the trainer decides when it ends.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _cutter = make_cutter()


def _end_with_parent() -> None:
    """A trainer that was killed tells nobody: its workers would wait for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _cut(chunk: Chunk) -> List[List[str]]:
    assert _cutter is not None
    return _cutter(chunk.texts, chunk.number)
