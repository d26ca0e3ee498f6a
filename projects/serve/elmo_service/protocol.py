"""A connection: uvicorn's, with limits of time."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from .limits import Limits
from .metrics import Metrics


class ImpatientProtocol(H11Protocol):
    """uvicorn's, with a time limit for the headers of a request, and for an answer: a client that
    sends nothing or reads nothing, or a byte now and then, would hold its connection, and the
    answer, for ever."""

    limits: Limits
    metrics: Metrics
    _headers: asyncio.TimerHandle | None = None
    _answer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        # Writing goes on when all before has left: an answer is over when the system has it.
        transport.set_write_buffer_limits(high=0)
        self._watch_headers()

    def data_received(self, data: bytes) -> None:
        """Headers are read, or a part of them."""
        super().data_received(data)
        self._watch_headers()

    def pause_writing(self) -> None:
        """The client has to read before more is written."""
        super().pause_writing()
        if self._answer is None:
            self._answer = self._start("write_seconds")

    def on_response_complete(self) -> None:
        """All of an answer has left."""
        self._answer = stop(self._answer)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing to wait for any more."""
        self._headers, self._answer = stop(self._headers), stop(self._answer)
        super().connection_lost(exc)

    def _watch_headers(self) -> None:
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._headers = stop(self._headers)
        elif self._headers is None:
            self._headers = self._start("header_seconds")

    def _start(self, limit: str) -> asyncio.TimerHandle:
        return self.loop.call_later(getattr(self.limits, limit), self._end, limit)

    def _end(self, limit: str) -> None:
        self.metrics.ended.labels(limit).inc()
        self.transport.abort()


def stop(timer: asyncio.TimerHandle | None) -> None:
    """Of a timer, if there is one."""
    if timer is not None:
        timer.cancel()
