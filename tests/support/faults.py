"""Faults at each point where a piece of work touches the disk.

The work runs in forked children, whose audit hook counts the events of Python's own file
operations: at the n-th one the child is killed, or the operation fails as on a full disk.
"""

import errno
import os
import resource
import sys
from typing import Callable, Iterator

CHANGES = {
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.truncate",
    "shutil.copyfile",
    "shutil.move",
    "sqlite3.connect",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
FINISHED, FAILED, KILLED = 0, 1, 9


def kill_at_each_write(work: Callable[[], object], first: int = 1, every: int = 1) -> Iterator[int]:
    """Run work in children, killed before their first, second, ... change of the disk (or of these
    `first`, `first + every`, ...), until one ends. YIELDS the number, after each child is gone."""
    yield from _run_until_finished(work, lambda: os._exit(KILLED), KILLED, first, every)


def fail_at_each_write(work: Callable[[], object]) -> Iterator[int]:
    """As `kill_at_each_write`, with a disk that is full from the n-th change on. The work
    must raise."""

    def fail() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    yield from _run_until_finished(work, fail, FAILED)


def fail_at_size(work: Callable[[], object], n_bytes: int) -> bool:
    """Run work in a child that cannot write more than some bytes into any file. RETURNS
    whether it came to its end."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
        work()

    return run_child(limited) == FINISHED


def _run_until_finished(
    work: Callable[[], object],
    fault: Callable[[], None],
    expected: int,
    first: int = 1,
    every: int = 1,
) -> Iterator[int]:
    for n in range(first, 10_000, every):
        status = run_child(lambda n=n: _run_with_fault(work, fault, n))
        if status == FINISHED:
            assert n > first, "the work hardly touched the disk"
            return
        assert status == expected, f"fault {n}: the child ended with {status}"
        yield n


def _run_with_fault(work: Callable[[], object], fault: Callable[[], None], n: int) -> None:
    left = n

    def audit(event: str, args: tuple) -> None:
        nonlocal left
        if event in CHANGES or (event == "open" and _is_writing(args)):
            left -= 1
            # A full disk stays full; removing and reading go on.
            if left == 0 or (left < 0 and event in ("open", "os.mkdir")):
                fault()

    sys.addaudithook(audit)
    work()


def _is_writing(args: tuple) -> bool:
    path, _mode, flags = args
    if isinstance(path, (str, bytes)) and os.fsdecode(path).startswith(("/dev/", "/proc/")):
        return False
    return bool(flags & _WRITING)


def run_child(work: Callable[[], object]) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(FINISHED)
        except BaseException:
            os._exit(FAILED)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
