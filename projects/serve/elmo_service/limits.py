"""What a server accepts, and for how long: `Limits`."""

import math
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Limits:
    """All limits of a server.

    max_bytes (int): of a request's body.
    max_texts (int): of a request.
    max_chars (int): of a request, all texts together.
    max_tokens (int): of a request, all texts together.
    max_answer_bytes (int): of an answer's body; of vectors the most that they may have as text,
        17 a number in JSON, is counted before they are computed.
    max_affixes (int): of a request: for each run of characters without a space, its length
        times its punctuation. A tokenizer that cuts punctuation off takes time in proportion
        to it, about 0.15 s for a million.
    batch_texts (int): read in one pass; 1 is one request at a time.
    batch_chars (int): read in one pass.
    queue_texts (int): that may wait; more are refused (503).
    unread_bytes (int): of all answers that are not sent to their end; more are refused (503).
    connections (int): open at once; more are refused (503).
    seconds (float): from the end of a request's body to its answer.
    header_seconds (float): that a client may take to send a request's headers.
    body_seconds (float): that a client may take to send a request's body.
    write_seconds (float): that a client may take to read an answer.
    grace_seconds (float): to answer accepted requests, after the signal to stop.
    stuck_seconds (float): of one pass, after which the server is no longer live.
    """

    max_bytes: int = 1_000_000
    max_texts: int = 64
    max_chars: int = 50_000
    max_tokens: int = 5_000
    max_answer_bytes: int = 16_000_000
    max_affixes: int = 2_000_000
    batch_texts: int = 64
    batch_chars: int = 50_000
    queue_texts: int = 1_024
    unread_bytes: int = 256_000_000
    connections: int = 512
    seconds: float = 10.0
    header_seconds: float = 10.0
    body_seconds: float = 10.0
    write_seconds: float = 30.0
    grace_seconds: float = 30.0
    stuck_seconds: float = 60.0

    def __post_init__(self) -> None:
        """RAISES (ValueError): if one is 0 or less, which would refuse everything, or infinite."""
        for name, value in asdict(self).items():
            if not 0 < value < math.inf:
                raise ValueError(f"{name} = {value} is not possible, give a finite one above 0.")
