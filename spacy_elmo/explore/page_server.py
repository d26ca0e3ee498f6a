"""The server of the page: its socket, and its end. Needs the extra "explore"."""

import os
import socket
from contextlib import suppress

import uvicorn
from fastapi import FastAPI

from ..errors import Errors

# Ctrl-C waits so many seconds for answers that are being computed.
_GRACE_SECONDS = 2


def open_socket(host: str, port: int) -> socket.socket:
    """host (str): name or address. port (int): 0 for any that is free. RETURNS (socket.socket):
    listening, so that a browser which comes early waits. RAISES (ValueError): EL282 if nothing
    can listen there."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except (OSError, UnicodeError) as err:
        raise ValueError(_cannot_listen(host, port, err)) from err
    # On Windows it would share the port with another server.
    if os.name == "posix":
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind(address)
        opened.listen()
    except OSError as err:
        opened.close()
        raise ValueError(_cannot_listen(host, port, err)) from err
    return opened


def _cannot_listen(host: str, port: int, error: Exception) -> str:
    reason = getattr(error, "strerror", None) or str(error)
    return Errors.EL282.format(host=host, port=port, error=reason)


def make_url(opened: socket.socket, host: str) -> str:
    """opened (socket.socket): listening. host (str): as it was given. RETURNS (str): the page's
    address."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{opened.getsockname()[1]}/"


def run_server(app: FastAPI, opened: socket.socket) -> None:
    """Serve until Ctrl-C or SIGTERM.

    app (FastAPI): what to serve.
    opened (socket.socket): from `open_socket`; the server closes it.
    """
    config = uvicorn.Config(
        app,
        ws="none",
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    # uvicorn raises it again after its own graceful end.
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[opened])
