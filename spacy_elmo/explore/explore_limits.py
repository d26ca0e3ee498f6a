"""What the page reads, and for how long: `ExploreLimits`."""

from dataclasses import dataclass

from ..utils import require_least

# Of a character in JSON at most, as "\ud83d\ude00"; and of what a request holds besides its text.
_CHARACTER_BYTES, _OTHER_BYTES = 12, 10_000


@dataclass(frozen=True)
class ExploreLimits:
    """All limits of the page, each at least 1.

    max_chars (int): characters of a text.
    max_lines (int): lines of a text that are not blank; each is read as a doc of its own.
    max_tokens (int): tokens of a text, all lines together.
    max_chosen (int): tokens that are compared with each other.
    max_waiting (int): requests that wait while the pipeline reads.
    seconds (float): from a request to its answer.
    """

    max_chars: int = 2_000
    max_lines: int = 20
    max_tokens: int = 500
    max_chosen: int = 16
    max_waiting: int = 8
    seconds: float = 20.0

    def __post_init__(self) -> None:
        """RAISES (ValueError): EL012 if one is less than 1."""
        for name, value in vars(self).items():
            require_least(name, value, 1)

    @property
    def max_bytes(self) -> int:
        """RETURNS (int): Bytes of a request: any text of `max_chars` fits."""
        return _CHARACTER_BYTES * self.max_chars + _OTHER_BYTES
