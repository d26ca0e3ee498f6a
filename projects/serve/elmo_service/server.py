"""The server's socket, its connections, and its end."""

import asyncio
import math
import os
import socket
from types import FrameType

import uvicorn
from fastapi import FastAPI

from .batcher import Batcher
from .door import RESERVE, Door
from .limits import Limits
from .protocol import ImpatientProtocol

# Of an answer, in the kernel. Left to itself, Linux takes up to 4 MB for each connection.
_UNREAD_BYTES = 262_144
# Milliseconds that the kernel can wait for a client: a C int.
_MOST_MILLISECONDS = 2**31 - 1
# Connections that wait to be accepted.
_BACKLOG = 256
# Of Python and its libraries; 9 were counted at rest.
_OWN_FILES = 100


def make_server(app: FastAPI, limits: Limits, log_level: str = "info") -> "Server":
    """RETURNS (Server): not yet running."""
    settings = {
        "limits": limits,
        "metrics": app.state.metrics,
        "door": Door(limits.connections),
    }
    protocol = type("Protocol", (ImpatientProtocol,), settings)

    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        access_log=False,
        log_level=log_level,
        server_header=False,
        # Connections that asyncio accepts at once, before the door sees the first.
        backlog=_BACKLOG,
        # Accepted requests have their answers by then, which have to be written.
        timeout_graceful_shutdown=math.ceil(limits.grace_seconds),
    )
    return Server(config, app.state.batcher)


def count_files(limits: Limits) -> int:
    """RETURNS (int): files that are open at once, at most."""
    return limits.connections + RESERVE + _BACKLOG + _OWN_FILES


def open_socket(host: str, port: int, write_seconds: float) -> socket.socket:
    """Connections inherit its limits: what the kernel keeps of an answer, and for how long if the
    client reads nothing (Linux).

    port (int): 0 for any that is free.
    RETURNS (socket): that accepts connections. RAISES (OSError, UnicodeError): if there is no such
        host, or if the address is in use.
    """
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    # asyncio sends without delay only on sockets that say that they are TCP; else an answer of two
    # pieces waits 40 ms for the client's acknowledgement.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # On Windows it would share the port with another server.
    if os.name == "posix":
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNREAD_BYTES)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # 0 would be for ever.
        milliseconds = min(math.ceil(1000 * write_seconds), _MOST_MILLISECONDS)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
    try:
        opened.bind(address)
        # A client that reads the address may connect before the server answers.
        opened.listen(_BACKLOG)
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
