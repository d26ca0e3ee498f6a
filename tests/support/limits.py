"""Work in a child that can take only so much memory and time."""

import os
import resource
import signal
from pathlib import Path
from typing import Callable

_PAGE = resource.getpagesize()
_REFUSED, _FINISHED, _BROKEN = b"R", b"F", b"B"


def refuse_limited(
    work: Callable[[], object], *, seconds: int = 20, n_bytes: int = 300_000_000
) -> str:
    """Run work that must raise ValueError, in a child.

    work (Callable[[], object]): what to do.
    seconds (int): of wall clock; beyond, the child is killed.
    n_bytes (int): memory on top of what this process has.
    RETURNS (str): the message.
    RAISES (AssertionError): if the work does anything else.
    """
    status, text = _run_child(work, seconds, n_bytes)
    assert status == _REFUSED, text
    return text


def finish_limited(
    work: Callable[[], object], *, seconds: int = 20, n_bytes: int = 300_000_000
) -> None:
    """As `refuse_limited`, for work that must come to its end."""
    status, text = _run_child(work, seconds, n_bytes)
    assert status == _FINISHED, text


def _run_child(work: Callable[[], object], seconds: int, n_bytes: int) -> tuple[bytes, str]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, _report(work, seconds, n_bytes)[:60_000])
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if not answer:
        return _BROKEN, f"the child ended with {os.waitstatus_to_exitcode(status)}"
    return answer[:1], answer[1:].decode("utf-8", "backslashreplace")


def _report(work: Callable[[], object], seconds: int, n_bytes: int) -> bytes:
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE
    resource.setrlimit(resource.RLIMIT_AS, (taken + n_bytes,) * 2)
    # Not pytest's handler: a library that waits for a file runs no Python.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    try:
        work()
    except ValueError as err:
        return _REFUSED + str(err).encode("utf-8", "backslashreplace")
    except BaseException as err:
        return _BROKEN + repr(err).encode("utf-8", "backslashreplace")
    return _FINISHED
