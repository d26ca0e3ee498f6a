"""Ctrl-C at random points, and at every point."""

import random
import signal
import sys
import time
from types import CodeType
from typing import Callable, Iterator


def interrupt_at_random(work: Callable[[], object], n_times: int, seed: int = 0) -> Iterator[bool]:
    """Do work again and again, with a KeyboardInterrupt at a random moment of it, as a user's
    Ctrl-C raises it: by a signal, whenever Python looks for one. To be used in the main
    thread, with `pytest.mark.timeout(method="thread")`, as the timer is the process's own.

    YIELDS (bool): each time whether it came before the work was done.
    """
    rng = random.Random(seed)
    is_armed = False

    def interrupt(signum: int, frame: object) -> None:
        nonlocal is_armed
        if is_armed:
            is_armed = False
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        seconds = _measure(work)
        for _ in range(n_times):
            was_interrupted = False
            try:
                is_armed = True
                signal.setitimer(signal.ITIMER_REAL, max(1e-6, rng.uniform(0.0, 1.1 * seconds)))
                work()
                is_armed = False
            except KeyboardInterrupt:
                was_interrupted = True
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            yield was_interrupted
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _measure(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(9):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return sorted(seconds)[4]


def interrupt_at_each_step(work: Callable[[], object], file: str) -> Iterator[int]:
    """Do work with a KeyboardInterrupt before the first, the second, ... bytecode of the
    functions of a file, until it comes to its end. For functions without locks or
    context managers: between these and what they guard, Python lets no signal in.

    YIELDS (int): the number, each time after the interrupt.
    """
    # Once without: Python 3.12.1 tells of no bytecode while it is asked for the first time.
    _trace(work, file, 0)
    for n in range(1, 100_000):
        try:
            _trace(work, file, n)
        except KeyboardInterrupt:
            yield n
        else:
            assert n > 1, "the work never came by this file"
            return


def _trace(work: Callable[[], object], file: str, n: int) -> None:
    left = n

    def trace(frame, event, arg):  # type: ignore[no-untyped-def]
        nonlocal left
        code: CodeType = frame.f_code
        if code.co_filename != file:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
