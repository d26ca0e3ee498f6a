"""Tags of a clause's tokens: BIO of the predicate and of each role, as numbers.

0 is O, 1 and 2 are B and I of the predicate, 3 and 4 those of the first role, and so on.
"""

import warnings
from typing import Dict, List, NamedTuple, Sequence, Union

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Span
from spacy.training import Example
from spacy.util import filter_spans

from ...errors import Warnings
from ..shared.bio_tags import LabelledSpan
from ..shared.places import Place
from .clauses import Clause
from .frames import PREDICATES, VERB, Frame, read_frames

# Of a token whose tag is not known: nothing is learned from it.
UNKNOWN = -1


class GoldFrame(NamedTuple):
    """predicate (Place): its tokens in the doc to be predicted. arguments (List[Span]): of that
    doc, none overlapping. unknown (List[Place]): tokens of arguments that begin or end inside of
    one."""

    predicate: Place
    arguments: List[Span]
    unknown: List[Place]


class GoldFrames(NamedTuple):
    """What is known of a doc.

    frames (List[GoldFrame]): in order.
    predicates (List[int]): first tokens of all predicates, also of those without a frame.
    unknown (List[int]): tokens of predicates that begin or end inside of one.
    """

    frames: List[GoldFrame]
    predicates: List[int]
    unknown: List[int]


def count_tags(n_labels: int) -> int:
    """n_labels (int): roles. RETURNS (int): Tags of them, the predicate and O."""
    return 2 * n_labels + 3


def find_gold(example: Example) -> GoldFrames:
    """Find the gold frames of an example, in the tokens of the doc to be predicted. What begins
    or ends inside of these is not learned (WL059).

    example (Example): of which the reference has frames, or none.
    RETURNS (GoldFrames): of arguments that overlap, the longest is kept (WL035).
    RAISES (ValueError): EL200 as `read_frames`.
    """
    frames = read_frames(example.reference)
    group = example.reference.spans.get(PREDICATES, [])
    named = [*(frame.predicate for frame in frames), *filter(len, group)]
    places = {(span.start, span.end): _align(example, span) for span in named}
    known = {place.start for place in places.values() if isinstance(place, Span)}
    unknown = {i for place in places.values() if isinstance(place, tuple) for i in range(*place)}
    gold = GoldFrames([], sorted(known), sorted(unknown - known))
    for frame in frames:
        predicate = places[frame.predicate.start, frame.predicate.end]
        if isinstance(predicate, Span):
            gold.frames.append(_align_frame(example, frame, predicate))
    if unknown or any(frame.unknown for frame in gold.frames):
        warnings.warn(Warnings.WL059, stacklevel=2)
    return gold


def _align_frame(example: Example, frame: Frame, predicate: Span) -> GoldFrame:
    places = [_align(example, span) for _, span in frame.arguments]
    spans = [place for place in places if isinstance(place, Span)]
    apart = [s for s in spans if s.end <= predicate.start or s.start >= predicate.end]
    kept = filter_spans(apart)
    if len(kept) < len(spans):
        warnings.warn(Warnings.WL035, stacklevel=2)
    unknown = [place for place in places if isinstance(place, tuple)]
    return GoldFrame((predicate.start, predicate.end), kept, unknown)


def _align(example: Example, span: Span) -> Union[Span, Place]:
    """RETURNS (Union[Span, Place]): The span in the doc to be predicted, or the tokens there that
    it lies in."""
    aligned = example.get_aligned_spans_y2x([span])
    if aligned:
        return aligned[0]
    tokens = example.alignment.y2x[span.start : span.end]
    return (int(tokens[0]), int(tokens[-1]) + 1) if len(tokens) else (0, 0)


def make_tags(clause: Clause, gold: GoldFrame, labels: Dict[str, int]) -> NDArray:
    """Make the gold tags of a clause.

    clause (Clause): what is read for the predicate.
    gold (GoldFrame): the frame.
    labels (Dict[str, int]): role -> number.
    RETURNS (NDArray): shape (n_tokens,), UNKNOWN for the tokens of roles that are not in `labels`
        (WL034), of arguments that reach beyond the clause (WL036), and that are unknown.
    """
    tags = np.zeros(clause.n_tokens, dtype="int64")
    for start, end in gold.unknown:
        tags[max(start - clause.start, 0) : max(end - clause.start, 0)] = UNKNOWN
    _set(tags, clause, clause.predicate, 1)
    for span in gold.arguments:
        place = max(span.start, clause.start), min(span.end, clause.end)
        is_inside = place == (span.start, span.end)
        if not is_inside:
            warnings.warn(Warnings.WL036, stacklevel=2)
        elif span.label_ not in labels:
            warnings.warn(Warnings.WL034.format(label=span.label_), stacklevel=2)
        if place[0] < place[1]:
            is_known = is_inside and span.label_ in labels
            _set(tags, clause, place, 3 + 2 * labels[span.label_] if is_known else UNKNOWN)
    return tags


def _set(tags: NDArray, clause: Clause, place: Place, first: int) -> None:
    start, end = place[0] - clause.start, place[1] - clause.start
    tags[start:end] = first if first == UNKNOWN else first + 1
    tags[start] = first


def read_roles(tags: Sequence[int], clause: Clause, labels: Sequence[str]) -> List[LabelledSpan]:
    """Read tags that are BIO.

    tags (Sequence[int]): of a clause's tokens.
    clause (Clause): the clause.
    labels (Sequence[str]): the roles.
    RETURNS (List[LabelledSpan]): tokens of the doc, in order; the predicate is labelled "V".
    """
    spans: List[LabelledSpan] = []
    for i, tag in enumerate(tags, start=clause.start):
        if tag % 2:
            label = VERB if tag == 1 else labels[(tag - 3) // 2]
            spans.append(LabelledSpan(i, i + 1, label))
        elif tag:
            start, _, label = spans.pop()
            spans.append(LabelledSpan(start, i + 1, label))
    return spans
