"""A connection: uvicorn's, with limits."""

import asyncio
from typing import Any

import h11
import orjson
from uvicorn.protocols.http.h11_impl import H11Protocol

from .door import Door
from .limits import Limits
from .metrics import Metrics
from .refusals import NO_HTTP, Refusal

# In the state of a scope: the connection is one too many.
CROWDED = "crowded"


class ImpatientProtocol(H11Protocol):
    """uvicorn's, with a time limit for the headers of a request, and for an answer: a client that
    sends nothing or reads nothing, or a byte now and then, would hold its connection, and the
    answer, for ever."""

    limits: Limits
    metrics: Metrics
    door: Door
    _headers: asyncio.TimerHandle | None = None
    _answer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        # Writing goes on when all before has left: an answer is over when the system has it.
        transport.set_write_buffer_limits(high=0)
        if not self.door.enter(self, transport):
            self.app_state = {**self.app_state, CROWDED: True}
            self._end("connections", self.door.pop_extra())
        self._watch_headers()

    def data_received(self, data: bytes) -> None:
        """Headers are read, or a part of them."""
        super().data_received(data)
        self._watch_headers()

    def send_400_response(self, msg: str) -> None:
        """As every refusal. msg (str): uvicorn's, the same for all."""
        # Else the answer to a request has begun, of which the rest is no HTTP.
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            refusal = Refusal(NO_HTTP)
            self.metrics.refusals.labels(refusal.code).inc()
            body = orjson.dumps(refusal.content)
            headers = {**refusal.headers, "content-type": "application/json"}
            response = h11.Response(
                status_code=refusal.status,
                headers=[*headers.items(), ("content-length", str(len(body)))],
                reason=b"Bad Request",
            )
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event))
        self.transport.close()

    def pause_writing(self) -> None:
        """The client has to read before more is written."""
        super().pause_writing()
        if self._answer is None:
            self._answer = self._start("write_seconds")

    def on_response_complete(self) -> None:
        """All of an answer has left."""
        stop(self._answer)
        self._answer = None
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing to wait for any more."""
        stop(self._headers)
        stop(self._answer)
        self._headers = self._answer = None
        self.door.leave(self)
        super().connection_lost(exc)

    def _watch_headers(self) -> None:
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            stop(self._headers)
            self._headers = None
        elif self._headers is None:
            self._headers = self._start("header_seconds")

    def _start(self, limit: str) -> asyncio.TimerHandle:
        return self.loop.call_later(getattr(self.limits, limit), self._end, limit, self.transport)

    def _end(self, limit: str, transport: asyncio.Transport | None) -> None:
        if transport is not None:
            self.metrics.ended.labels(limit).inc()
            transport.abort()


def stop(timer: asyncio.TimerHandle | None) -> None:
    """Of a timer, if there is one."""
    if timer is not None:
        timer.cancel()
