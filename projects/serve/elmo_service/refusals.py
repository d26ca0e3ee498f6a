"""Why a request is refused: every reason that a client may read, with its status."""

from typing import Any, NamedTuple


class Reason(NamedTuple):
    """status (int): of HTTP. text (str): what happened, what was expected, what to do."""

    code: str
    status: int
    text: str


NO_JSON = Reason("EL260", 400, "The body is no JSON in UTF-8. Send one JSON object.")
NO_REQUEST = Reason(
    "EL261",
    422,
    "The body does not fit: {problems}. See /openapi.json, and send it with the header "
    "content-type: application/json.",
)
TOO_MUCH = Reason(
    "EL262", 413, "The request has {n} {what}, at most {limit} are read. Send several requests."
)
TOO_MANY_AFFIXES = Reason(
    "EL263",
    413,
    "A part of text {i} without a space has {n} characters, {n_affixes} of them punctuation: "
    "tokenizing would take too long. Put spaces into it or leave it out.",
)
FULL = Reason("EL264", 503, "{n} texts wait already, at most {limit} may. Try again later.")
STOPPING = Reason("EL265", 503, "The server is stopping. Try again, on another server.")
TOO_LATE = Reason("EL266", 504, "No answer within {limit:g} seconds. Send less or try again later.")
TOO_SLOW = Reason("EL267", 408, "The body did not come within {limit:g} seconds. Try again.")
NOT_OFFERED = Reason(
    "EL268",
    404,
    "This server's pipeline sets no {what}; its components are: {components}. Ask a server "
    "whose pipeline does.",
)
FAILED = Reason(
    "EL269", 500, "The texts could not be read; the server's log says why. Leave texts out."
)
TOO_LONG = Reason(
    "EL310",
    413,
    "The answer may have {n:,} bytes, at most {limit:,} are sent. For vectors of tokens, ask for "
    '"encoding": "base64", less than half as long, or for "pooling": "mean"; or send several '
    "requests.",
)
NO_ROOM = Reason(
    "EL311",
    503,
    "{n:,} bytes of answers are unread, at most {limit:,} may be. Read answers at once, and try "
    "again later.",
)
TOO_MANY = Reason(
    "EL312",
    503,
    "{limit} connections are open already. Try again later, and send several requests over one.",
)
NO_HTTP = Reason("EL313", 400, "This is no request in HTTP/1.1. Send one, with a client for HTTP.")
# Seconds after which a client may try again.
RETRY_SECONDS = 1


class Refusal(Exception):
    """A request that is not answered.

    reason (Reason): with the fields of its text, by their names.
    """

    def __init__(self, reason: Reason, **fields: Any) -> None:
        self.status = reason.status
        self.code = reason.code
        self.text = reason.text.format(**fields)
        super().__init__(f"[{self.code}] {self.text}")

    @property
    def content(self) -> dict[str, dict[str, str]]:
        """The body of the answer."""
        return describe_refusal(self.code, self.text)

    @property
    def headers(self) -> dict[str, str]:
        """Of the answer. What was not read to its end is not read on."""
        retry = {"retry-after": str(RETRY_SECONDS)} if self.status == 503 else {}
        close = {"connection": "close"} if self.status in (400, 408, 413) else {}
        return {**retry, **close}


def describe_refusal(code: str, text: str) -> dict[str, dict[str, str]]:
    """RETURNS (dict): the body of every answer that is a refusal."""
    return {"error": {"code": code, "reason": text}}
