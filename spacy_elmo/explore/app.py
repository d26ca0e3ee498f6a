"""The page as a web app, and its server. Needs the extra "explore"."""

import logging
import socket
import threading
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Callable, Dict, List

import uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, StrictInt, StrictStr
from starlette.middleware.trustedhost import TrustedHostMiddleware

from ..errors import Errors
from ..utils import show_reason
from .explorer import Explorer

logger = logging.getLogger(__name__)

# Names that a browser on this machine may use for it. Older versions of Starlette cut "[::1]" at
# its first colon.
_LOOPBACK = ["localhost", "127.0.0.1", "::1", "[::1]", "["]
# Seconds that Ctrl-C waits for answers that are being computed.
_GRACE_SECONDS = 2


class TextBody(BaseModel):
    """text (str): lines."""

    text: StrictStr


class TokensBody(TextBody):
    """tokens (List[int]): numbers of tokens in the text."""

    tokens: List[StrictInt]


class TokenBody(TextBody):
    """token (int): number of a token in the text. layer (int): of the biLM."""

    token: StrictInt
    layer: StrictInt = -1


def create_app(explorer: Explorer, host: str = "127.0.0.1") -> FastAPI:
    """Build the app of a pipeline. If only this machine reaches `host`, requests for another host
    are refused (DNS rebinding)."""
    # Pages of documentation would load scripts from elsewhere.
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    lock = threading.Lock()
    description = explorer.describe()

    def run(call: Callable[..., Dict[str, Any]], *arguments: Any) -> JSONResponse:
        """Answer requests one at a time: FastAPI calls these functions in several threads."""
        if not lock.acquire(timeout=explorer.limits.seconds):
            error = "The pipeline is reading other texts. Wait a little, then try again."
            return JSONResponse({"error": error}, 503)
        try:
            return JSONResponse(call(*arguments))
        except ValueError as err:
            return JSONResponse({"error": str(err)}, 400)
        except Exception as err:
            logger.exception("A request failed")
            error = f"The pipeline failed with this text: {show_reason(err)}."
            return JSONResponse({"error": error}, 500)
        finally:
            lock.release()

    @app.get("/api/pipeline")
    def pipeline() -> Dict[str, Any]:
        return description

    @app.post("/api/read")
    def read(body: TextBody) -> JSONResponse:
        return run(explorer.read, body.text)

    @app.post("/api/compare")
    def compare(body: TokensBody) -> JSONResponse:
        return run(explorer.compare, body.text, body.tokens)

    @app.post("/api/substitute")
    def substitute(body: TokenBody) -> JSONResponse:
        return run(explorer.substitute, body.text, body.token)

    @app.post("/api/search")
    def search(body: TokenBody) -> JSONResponse:
        return run(explorer.search, body.text, body.token, body.layer)

    app.mount("/", StaticFiles(directory=Path(__file__).parent / "static", html=True))
    hosts = [*_LOOPBACK, host.lower()] if is_loopback(host) else ["*"]
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts)
    return app


def is_loopback(host: str) -> bool:
    """host (str): name or address to listen at. RETURNS (bool): whether only this machine reaches
    it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def open_socket(host: str, port: int) -> socket.socket:
    """Open a socket (port 0: any that is free) before the pipeline is loaded, so that a browser
    that comes early waits. RAISES (ValueError): EL282 if nothing can listen there."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except (OSError, UnicodeError) as err:
        reason = getattr(err, "strerror", None) or str(err)
        raise ValueError(Errors.EL282.format(host=host, port=port, error=reason)) from err


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
    # uvicorn raises it again after its shutdown.
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[opened])
