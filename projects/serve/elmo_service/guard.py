"""Around the app: clients that send too much or too slowly, or that go away."""

import asyncio
import time
from collections.abc import Collection

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .bodies import require_most
from .limits import Limits
from .metrics import Metrics
from .protocol import CROWDED
from .refusals import TOO_MANY, TOO_SLOW, Refusal
from .sending import Answer
from .unread import Unread

# What nginx writes to its log for it; nobody receives it.
CLIENT_GONE = 499
# A refused body is read up to this multiple of the limit: a client that is still sending would
# not see the reason.
DISCARDED = 10
# Answered on every connection: the server is alive though others hold all of them.
WATCHING = frozenset(["/live", "/ready", "/metrics"])


class ClientGone(Exception):
    """The connection ended before the body did."""


class Guard:
    """ASGI middleware: reads the body within the limits, and cancels the request if the client
    goes away. Counts every request, and gives each a share of the memory of answers.

    paths (Collection[str]): that have a separate metric.
    """

    def __init__(
        self, app: ASGIApp, *, limits: Limits, metrics: Metrics, paths: Collection[str]
    ) -> None:
        self.app = app
        self.limits = limits
        self.metrics = metrics
        self.paths = frozenset(paths)
        self.unread = Unread(limits, metrics)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        started = time.monotonic()
        path = scope["path"] if scope["path"] in self.paths else "other"
        is_crowded = CROWDED in scope.get("state", {})
        answer = Answer(send, is_last=is_crowded)
        try:
            with self.unread.open_share() as scope["share"]:
                await self.answer_or_refuse(
                    scope, receive, answer, is_crowded and path not in WATCHING
                )
        finally:
            status = answer.status or CLIENT_GONE
            self.metrics.requests.labels(path, str(status)).inc()
            self.metrics.seconds.labels(path).observe(time.monotonic() - started)

    async def answer_or_refuse(
        self, scope: Scope, receive: Receive, answer: Answer, is_extra: bool
    ) -> None:
        """Refuse what is too large, too slow or too many; pass the rest on."""
        try:
            body = await self.read_body(scope, receive)
            if is_extra:
                raise Refusal(TOO_MANY, limit=self.limits.connections)
        except ClientGone:
            return
        except Refusal as refusal:
            self.metrics.refusals.labels(refusal.code).inc()
            response = JSONResponse(refusal.content, refusal.status, refusal.headers)
            return await response(scope, receive, answer.send)
        await self.run_while_connected(scope, body, receive, answer)

    async def read_body(self, scope: Scope, receive: Receive) -> bytes:
        """RETURNS (bytes): all of it. RAISES (Refusal): EL262 or EL267; ClientGone."""
        length = int(dict(scope["headers"]).get(b"content-length", b"0"))
        limit, seconds = self.limits.max_bytes, self.limits.body_seconds
        if length > DISCARDED * limit:
            require_most(length, "bytes", limit)
        try:
            return await asyncio.wait_for(collect_body(receive, limit), seconds)
        except asyncio.TimeoutError:
            raise Refusal(TOO_SLOW, limit=seconds) from None

    async def run_while_connected(
        self, scope: Scope, body: bytes, receive: Receive, answer: Answer
    ) -> None:
        """Run the app, and cancel it if the client goes away before the answer begins."""
        app = asyncio.ensure_future(self.app(scope, replay(body), answer.send))
        # After the body, this is the end of the connection or of the answer.
        gone = asyncio.ensure_future(receive())
        try:
            await asyncio.wait({app, gone}, return_when=asyncio.FIRST_COMPLETED)
            if answer.status:
                await app
        finally:
            for task in (app, gone):
                task.cancel()
            await asyncio.gather(app, gone, return_exceptions=True)
        if not app.cancelled():
            app.result()


async def collect_body(receive: Receive, max_bytes: int) -> bytes:
    """RETURNS (bytes): the body. RAISES (Refusal): EL262; ClientGone if it is cut off."""
    body = bytearray()
    n_bytes, has_more = 0, True
    while has_more and n_bytes <= DISCARDED * max_bytes:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        piece = message.get("body", b"")
        n_bytes += len(piece)
        has_more = message.get("more_body", False)
        if n_bytes <= max_bytes:
            body += piece
    require_most(n_bytes, "bytes", max_bytes)
    return bytes(body)


def replay(body: bytes) -> Receive:
    """RETURNS (Receive): gives the body as one message, and nothing more."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        if not messages:
            # The guard watches for the end of the connection.
            await asyncio.Event().wait()
        return messages.pop()

    return receive_again
