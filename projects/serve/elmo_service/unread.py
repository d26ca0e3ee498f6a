"""Answers that clients have not read to their end: their bytes, of all requests together."""

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from .limits import Limits
from .metrics import Metrics
from .refusals import NO_ROOM, TOO_LONG, Refusal

# Bytes of an answer whose memory is returned to the system.
_LARGE = 1_000_000
# One of so few is always sent: those of other clients stay so while large ones are unread.
_SMALL = 100_000


class Unread:
    """Memory that answers may take, from the start of writing until they are sent.

    The worker thread asks for it and the event loop gives it back.
    """

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self.limits = limits
        self._gauge = metrics.unread
        self._lock = Lock()
        self._n_bytes = 0

    @contextmanager
    def open_share(self) -> Iterator["Share"]:
        """RETURNS (context manager): the share of a request, given back at its end."""
        share = Share(self)
        try:
            yield share
        finally:
            self.resize(share, 0, close=True)
            if share.most_bytes >= _LARGE:
                trim_memory()

    def resize(self, share: "Share", n_bytes: int, *, close: bool = False) -> None:
        """Change how much a request holds. A closed share holds nothing: its client has left.

        RAISES (Refusal): EL311 if there is no room; the share stays as it was.
        """
        with self._lock:
            if share.is_closed:
                return
            others = self._n_bytes - share.n_bytes
            # One answer may be there alone, whatever the limit.
            has_room = not others or others + n_bytes <= self.limits.unread_bytes
            if n_bytes > max(share.n_bytes, _SMALL) and not has_room:
                raise Refusal(NO_ROOM, n=others, limit=self.limits.unread_bytes)
            self._n_bytes = others + n_bytes
            share.n_bytes, share.is_closed = n_bytes, close
            share.most_bytes = max(share.most_bytes, n_bytes)
            self._gauge.set(self._n_bytes)


class Share:
    """What the answer of one request takes. most_bytes (int): at any time."""

    def __init__(self, unread: Unread) -> None:
        self._unread = unread
        self.n_bytes = self.most_bytes = 0
        self.is_closed = False

    def resize(self, n_bytes: int) -> None:
        """n_bytes (int): of the answer; an upper bound until it is written.
        RAISES (Refusal): EL310 if an answer may not be so long, EL311 if there is no room."""
        limit = self._unread.limits.max_answer_bytes
        if n_bytes > limit:
            raise Refusal(TOO_LONG, n=n_bytes, limit=limit)
        self._unread.resize(self, n_bytes)


def find_trim() -> Callable[[int], int] | None:
    """RETURNS (Callable | None): `malloc_trim` of a libc that has it (glibc)."""
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


_malloc_trim = find_trim()


def trim_memory() -> None:
    """Give back what is free between blocks that stay: glibc does so at the end of its heap only,
    and the server would keep the memory of its most unread answers for ever."""
    if _malloc_trim is not None:
        _malloc_trim(0)
