"""What the model reads of a doc for one predicate: the predicate's sentence, or its window."""

from bisect import bisect_right
from typing import List, NamedTuple, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ...layers.spans import SentenceSpans, WindowSpans
from ..shared.places import Place


class Clause(NamedTuple):
    """doc (int): which doc of the batch. start, end (int): its tokens that are read. predicate
    (Place): the predicate's, of the same doc."""

    doc: int
    start: int
    end: int
    predicate: Place

    @property
    def n_tokens(self) -> int:
        """RETURNS (int): Tokens that are read."""
        return self.end - self.start


def make_clauses(
    docs: Sequence[Doc], predicates: Sequence[Sequence[Place]], max_tokens: int
) -> List[Clause]:
    """Find what is read for each predicate.

    docs (Sequence[Doc]): a batch.
    predicates (Sequence[Sequence[Place]]): of each doc.
    max_tokens (int): longer sentences, and docs without sentence starts, are cut into windows.
    RETURNS (List[Clause]): doc after doc, predicates as they come. A predicate that reaches into
        the next sentence ends with its own.
    """
    clauses = []
    for i, (doc, places) in enumerate(zip(docs, predicates)):
        bounds = _find_bounds(doc, max_tokens) if places else []
        for start, end in places:
            k = bisect_right(bounds, start) - 1
            clauses.append(Clause(i, bounds[k], bounds[k + 1], (start, min(end, bounds[k + 1]))))
    return clauses


def _find_bounds(doc: Doc, max_tokens: int) -> List[int]:
    """Where sentences or windows begin, and the end of the doc."""
    cut = SentenceSpans if doc.has_annotation("SENT_START") else WindowSpans
    return [*(span.start for span in cut(max_tokens)([doc])[0]), len(doc)]


def find_rows(clauses: Sequence[Clause], lengths: Sequence[int]) -> Tuple[NDArray, NDArray]:
    """Find the rows of clauses in the rows of the docs, put end to end.

    clauses (Sequence[Clause]): at least one.
    lengths (Sequence[int]): tokens of the docs.
    RETURNS (Tuple[NDArray, NDArray]): clause after clause, shape (n_tokens,): rows; and whether
        the predicate begins there.
    """
    offsets = np.cumsum([0, *lengths])
    rows = [offsets[c.doc] + np.arange(c.start, c.end) for c in clauses]
    marks = [np.arange(c.start, c.end) == c.predicate[0] for c in clauses]
    return np.concatenate(rows), np.concatenate(marks)
