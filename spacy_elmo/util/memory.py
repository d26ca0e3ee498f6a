"""What the system tells of memory, and is told."""

import ctypes
import os
import re
import sys
from typing import Callable

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def read_peak_memory() -> int:
    """RETURNS (int): bytes of memory that the process has had at most; 0 if the system
    does not tell."""
    if resource is None:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def read_total_memory() -> int:
    """RETURNS (int): bytes of memory that the machine has; 0 if the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no such function
        return 0


def keep_memory() -> None:
    """Have the C library keep what it frees: asking the system for the same large blocks
    over and over costs a fifth of the time of pretraining. glibc only; harmless elsewhere."""
    m_trim_threshold, m_mmap_threshold = -1, -3
    _call_libc("mallopt", m_mmap_threshold, 1 << 30)
    _call_libc("mallopt", m_trim_threshold, (1 << 31) - 1)


def release_memory() -> None:
    """Have the C library give back what it keeps of what was freed: after many arrays of all
    sizes, that is most of a process's memory. glibc only; harmless elsewhere."""
    _call_libc("malloc_trim", 0)


def _call_libc(name: str, *args: int) -> None:
    """Call a function of the C library, if it has it."""
    if sys.platform == "linux":
        call: Callable[..., int] = getattr(ctypes.CDLL(None), name, lambda *args: 0)
        call(*args)


def is_out_of_memory(err: BaseException) -> bool:
    """err (BaseException): any. RETURNS (bool): Whether it says that there is not enough memory:
    torch has a class of its own for the memory of a GPU alone."""
    return isinstance(err, MemoryError) or (
        isinstance(err, RuntimeError) and bool(re.search("allocate|out of memory", str(err)))
    )
