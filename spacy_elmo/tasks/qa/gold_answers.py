"""Gold answers: the span group "answers" of a reference doc, with the official texts."""

from typing import Any, List, NamedTuple, Optional, Sequence

from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

from ...errors import Errors
from ..shared.places import Place
from ..shared.text_pairs import get_pair
from .answers import ANSWERS
from .qa_readings import PAIR_NAMES

_TEXTS = "texts"
_LABEL = "answer"


class Gold(NamedTuple):
    """What should be answered.

    places (List[Place]): tokens of the doc to be predicted; those that can be learned.
    texts (List[str]): the official answers; none for a question without an answer.
    """

    places: List[Place]
    texts: List[str]


def set_gold(doc: Doc, spans: Sequence[Span], texts: Optional[Sequence[str]] = None) -> None:
    """Say what should be answered.

    doc (Doc): with a question and a context; changed in place.
    spans (Sequence[Span]): the right answers, each as good; none for a question without one.
    texts (Optional[Sequence[str]]): answers to be scored with, where they are not the spans'.
    """
    attrs = {} if texts is None else {_TEXTS: [*texts]}
    labelled = [Span(doc, span.start, span.end, label=_LABEL) for span in spans]
    doc.spans[ANSWERS] = SpanGroup(doc, name=ANSWERS, spans=labelled, attrs=attrs)


def get_gold(example: Example) -> Optional[Gold]:
    """Find the gold answers of an example.

    example (Example): any.
    RETURNS (Optional[Gold]): None if the reference has no pair, or no span group "answers".
    RAISES (ValueError): EL199 if the doc to be predicted lacks the pair, EL221 for an answer
        outside of the context.
    """
    reference = example.reference
    pair = get_pair(reference, PAIR_NAMES)
    if pair is None or ANSWERS not in reference.spans:
        return None
    if get_pair(example.predicted, PAIR_NAMES) is None:
        raise ValueError(Errors.EL199.format(text=example.text[:50], names=str([*PAIR_NAMES])))
    group = reference.spans[ANSWERS]
    spans = list(group)
    for span in spans:
        if not pair.second.start <= span.start < span.end <= pair.second.end:
            text = Errors.EL221.format(answer=span.text[:50], text=reference.text[:50])
            raise ValueError(text)
    texts: Any = group.attrs.get(_TEXTS)
    aligned = example.get_aligned_spans_y2x(spans, allow_overlap=True)
    places = sorted({(span.start, span.end) for span in aligned})
    return Gold(places, [span.text for span in spans] if texts is None else list(texts))
