"""Around the app: only the page itself may ask, and it loads nothing from elsewhere."""

from ipaddress import ip_address
from typing import Dict, Optional, Tuple
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import Errors
from ..utils import show_name

# Names that a browser on this machine may use for it.
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))
SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def describe_error(text: str) -> Dict[str, str]:
    """text (str): a message with its code. RETURNS (Dict[str, str]): the body of every refusal."""
    return {"error": text}


def is_loopback(host: str) -> bool:
    """host (str): name or address to listen at. RETURNS (bool): whether only this machine reaches
    it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class RequestGuard:
    """ASGI middleware: refuses requests for another host (DNS rebinding) or from another page, and
    those that are too large; adds headers to every answer.

    host (str): where the server listens. If that is loopback, only its names are served.
    max_bytes (int): of a request's body.
    """

    def __init__(self, app: ASGIApp, *, host: str, max_bytes: int) -> None:
        self.app = app
        self.hosts = _LOOPBACK | {host.lower()} if is_loopback(host) else None
        self.max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Of ASGI."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        send = _add_headers(send)
        headers = Headers(scope=scope)
        refusal = self._find_refusal(headers)
        if refusal is not None:
            status, text = refusal
            return await JSONResponse(describe_error(text), status)(scope, receive, send)
        await self.app(scope, _limit(receive, self.max_bytes), send)

    def _find_refusal(self, headers: Headers) -> Optional[Tuple[int, str]]:
        """RETURNS (Optional[Tuple[int, str]]): status and message."""
        host, origin = headers.get("host", ""), headers.get("origin")
        is_ours = self.hosts is None or _read_name(host) in self.hosts
        if not is_ours or (origin is not None and origin.partition("://")[2] != host):
            shown = [show_name(name) for name in (host, origin or "no page")]
            return 403, Errors.EL280.format(host=shown[0], origin=shown[1])
        length = headers.get("content-length", "0")
        n_bytes = int(length) if length.isdecimal() else self.max_bytes + 1
        if n_bytes > self.max_bytes:
            values = {"n": n_bytes, "most": self.max_bytes, "option": "--max-chars"}
            return 413, Errors.EL272.format(what="bytes", **values)
        return None


def _read_name(host: str) -> str:
    """host (str): with or without a port. RETURNS (str): the name; "" if it is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _add_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(SECURITY_HEADERS)
        await send(message)

    return send_with_headers


def _limit(receive: Receive, max_bytes: int) -> Receive:
    """A body may come in pieces, without its length."""
    n_bytes = 0

    async def receive_limited() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > max_bytes:
            return {"type": "http.disconnect"}
        return message

    return receive_limited
