"""The answer on its way to the client."""

from starlette.types import Message, Send

# A piece is written when the one before it has left: what waits is the body once, and a piece.
_PIECE_BYTES = 65_536


class Answer:
    """Sends a body in pieces.

    is_last (bool): the connection ends with it.
    status (int | None): of the answer; None before it is sent.
    """

    def __init__(self, send: Send, *, is_last: bool = False) -> None:
        self._send = send
        self._is_last = is_last
        self.status: int | None = None

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        self.status = message.get("status", self.status)
        if message["type"] == "http.response.body":
            await self._send_pieces(message.get("body", b""), message.get("more_body", False))
        else:
            close = [(b"connection", b"close")] if self._is_last else []
            await self._send({**message, "headers": [*message.get("headers", []), *close]})

    async def _send_pieces(self, body: bytes, has_more: bool) -> None:
        for start in range(0, len(body), _PIECE_BYTES):
            piece = body[start : start + _PIECE_BYTES]
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        # Nothing, but only when the last piece has left.
        await self._send({"type": "http.response.body", "body": b"", "more_body": has_more})
