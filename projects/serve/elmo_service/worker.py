"""The one thread that calls the pipeline: a batch of requests in, bytes or refusals out."""

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from .answers import Reader
from .bodies import require_most
from .metrics import Metrics
from .refusals import FAILED, Refusal
from .unread import Share

logger = logging.getLogger(__name__)


class Work(NamedTuple):
    """texts (list[str]): of one request. reader (Reader): what is asked of them.
    share (Share): holds the bytes of the answer."""

    texts: list[str]
    reader: Reader
    share: Share


class Worker:
    """Read batches of requests.

    zones (bool): give back what the vocab collects, after each batch (spaCy's memory zones).
    """

    def __init__(
        self, nlp: Language, metrics: Metrics, *, max_tokens: int, zones: bool = True
    ) -> None:
        self.nlp = nlp
        self.metrics = metrics
        self.max_tokens = max_tokens
        self.zones = zones

    def __call__(self, works: Sequence[Work]) -> list[bytes | Refusal]:
        """RETURNS (list): the answer or the refusal of each."""
        results = self.read_or_halve(works)
        # Not the length of the vocab: that never goes down, whatever a zone gives back.
        self.metrics.strings.set(len(self.nlp.vocab.strings))
        return results

    def read_or_halve(self, works: Sequence[Work]) -> list[bytes | Refusal]:
        """Whatever a text does to the pipeline, or if memory is not enough for all: the halves
        are tried, down to single requests, so that no other is refused for it."""
        try:
            with self.open_zone():
                return self.read_batch(works)
        except Exception:
            if len(works) == 1:
                logger.exception("A request of %d texts failed", len(works[0].texts))
                return [Refusal(FAILED)]
            logger.warning("A batch of %d requests failed, trying its halves", len(works))
        middle = len(works) // 2
        return [*self.read_or_halve(works[:middle]), *self.read_or_halve(works[middle:])]

    def open_zone(self) -> AbstractContextManager[Any]:
        """RETURNS (context manager): docs are valid in it alone."""
        return self.nlp.memory_zone() if self.zones else nullcontext()

    def read_batch(self, works: Sequence[Work]) -> list[bytes | Refusal]:
        """All texts in one pass of the pipeline."""
        tokenized = [self.tokenize(work) for work in works]
        batch = [doc for docs in tokenized if isinstance(docs, list) for doc in docs]
        annotated = iter(self.nlp.pipe(batch, batch_size=max(1, len(batch))))
        results: list[bytes | Refusal] = [
            write(work, list(islice(annotated, len(docs)))) if isinstance(docs, list) else docs
            for work, docs in zip(works, tokenized)
        ]
        self.metrics.texts.inc(len(batch))
        self.metrics.tokens.inc(sum(map(len, batch)))
        return results

    def tokenize(self, work: Work) -> list[Doc] | Refusal:
        """RETURNS (list[Doc] | Refusal): tokens alone are cheap to count, and say how long an
        answer may become."""
        docs = [self.nlp.make_doc(text) for text in work.texts]
        try:
            require_most(sum(map(len, docs)), "tokens", self.max_tokens)
            work.share.resize(work.reader.bound(docs))
        except Refusal as refusal:
            return refusal
        return docs


def write(work: Work, docs: list[Doc]) -> bytes | Refusal:
    """RETURNS (bytes | Refusal): the answer, if its share may be so large."""
    body = work.reader.read(docs)
    try:
        work.share.resize(len(body))
    except Refusal as refusal:
        return refusal
    return body
