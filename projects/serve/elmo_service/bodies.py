"""The bodies of requests, and what is refused before a text is read."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from .limits import Limits
from .refusals import TOO_MANY_AFFIXES, TOO_MUCH, Refusal


def require_characters(text: str) -> str:
    """RAISES (ValueError): if a text has half a character, which JSON can write."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a surrogate without its other half is no character") from None
    return text


Text = Annotated[str, AfterValidator(require_characters)]
Pair = Annotated[list[Text], Field(min_length=2, max_length=2)]


class Body(BaseModel):
    """Of any request: unknown keys and other types are mistakes."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TextsBody(Body):
    """texts: to annotate; an empty one is a text without tokens."""

    texts: Annotated[list[Text], Field(min_length=1)]


class VectorsBody(TextsBody):
    """pooling: a vector for each token, or their mean. encoding: numbers, or little-endian
    float32 in base64, less than half as long and as exact."""

    pooling: Literal["none", "mean"] = "none"
    encoding: Literal["json", "base64"] = "json"


class PairsBody(Body):
    """pairs: of texts to compare."""

    pairs: Annotated[list[Pair], Field(min_length=1)]


def check_texts(texts: list[str], limits: Limits) -> None:
    """RAISES (Refusal): EL262 or EL263 if there are too many, or if they are too long."""
    require_most(len(texts), "texts", limits.max_texts)
    require_most(sum(map(len, texts)), "characters", limits.max_chars)
    left = limits.max_affixes
    for i, text in enumerate(texts):
        for run in text.split():
            # Any shorter run costs next to nothing, and so do as many as a request may have.
            n_affixes = count_affixes(run) if len(run) > 100 else 0
            left -= n_affixes * len(run)
            if left < 0:
                raise Refusal(TOO_MANY_AFFIXES, i=i, n=len(run), n_affixes=n_affixes)


def require_most(n: int, what: str, limit: int) -> None:
    """RAISES (Refusal): EL262 if n is more than the limit."""
    if n > limit:
        raise Refusal(TOO_MUCH, n=n, what=what, limit=limit)


def count_affixes(run: str) -> int:
    """RETURNS (int): characters that a tokenizer may cut off; "'s" and ":p" have letters."""
    return sum(not char.isalnum() for char in run)
