"""The server's socket, its connections, and its end."""

import asyncio
import math
import socket
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from .batcher import Batcher
from .limits import Limits


def make_server(app: FastAPI, limits: Limits, log_level: str = "info") -> "Server":
    """RETURNS (Server): not yet running."""

    class Protocol(ImpatientProtocol):
        header_seconds = limits.header_seconds

    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        access_log=False,
        log_level=log_level,
        server_header=False,
        limit_concurrency=limits.connections,
        # What was accepted has its answer by then: it has to be written.
        timeout_graceful_shutdown=math.ceil(limits.grace_seconds),
    )
    return Server(config, app.state.batcher)


def open_socket(host: str, port: int, write_seconds: float) -> socket.socket:
    """Connections inherit its time limit: the kernel ends one whose client leaves an answer
    unread for so long.

    port (int): 0 for any that is free.
    RETURNS (socket): bound. RAISES (OSError): if the address is in use.
    """
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    # asyncio sends without delay only on sockets that say that they are TCP; else an answer of two
    # pieces waits 40 ms for the client's acknowledgement.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        milliseconds = int(1000 * write_seconds)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
    try:
        opened.bind(address)
    except OSError:
        opened.close()
        raise
    return opened


class Server(uvicorn.Server):
    """At SIGTERM or Ctrl-C all that was accepted is finished, and what comes is refused, before
    the connections close. A second signal closes them at once."""

    def __init__(self, config: uvicorn.Config, batcher: Batcher) -> None:
        super().__init__(config)
        self.batcher = batcher
        self._stop: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called by the signal."""
        if not self.started or self.batcher.is_stopping:
            self.should_exit = self.force_exit = True
        else:
            self.batcher.is_stopping = True
            self._loop.call_soon_threadsafe(self.stop)

    def stop(self) -> None:
        """Begin to stop."""
        self._stop = asyncio.ensure_future(self._drain())

    async def _drain(self) -> None:
        seconds = self.batcher.limits.grace_seconds
        try:
            await asyncio.wait_for(self.batcher.drain(), seconds)
        except asyncio.TimeoutError:
            uvicorn.server.logger.error("Not all was answered within %g seconds", seconds)
        self.should_exit = True


class ImpatientProtocol(H11Protocol):
    """uvicorn's, with a time limit for the headers of a request: a client that sends nothing, or
    a byte now and then, would hold its connection for ever."""

    header_seconds: float
    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._watch_headers()

    def data_received(self, data: bytes) -> None:
        """Headers are read, or a part of them."""
        super().data_received(data)
        self._watch_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing to wait for any more."""
        self._forget_limit()
        super().connection_lost(exc)

    def _watch_headers(self) -> None:
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._forget_limit()
        elif self._limit is None:
            self._limit = self.loop.call_later(self.header_seconds, self.transport.abort)

    def _forget_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
