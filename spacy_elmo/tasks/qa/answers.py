"""What was answered: kept with the span group "answers" of a doc, which `DocBin` saves."""

from typing import List, NamedTuple, Optional

from spacy.tokens import Doc, Span, SpanGroup

from ..shared.text_pairs import get_pair
from .qa_readings import PAIR_NAMES
from .span_table import Ranked

ANSWERS = "answers"
_LABEL = "answer"
# Of the span group.
_CANDIDATES, _NO_ANSWER, _COMPONENT = "candidates", "no_answer", "component"


class Answer(NamedTuple):
    """An answer, or that the context has none.

    span (Optional[Span]): of the doc with question and context; None for no answer.
    text (str): its text; "" for no answer.
    start, end (int): its characters in the context: `context[start:end] == text`.
    probability (float): of this answer; those of all spans and of no answer sum to 1.
    no_answer (float): probability that the context has no answer.
    """

    span: Optional[Span]
    text: str
    start: int
    end: int
    probability: float
    no_answer: float


class Ranking(NamedTuple):
    """spans (List[Ranked]): the likeliest, best first. no_answer (float): probability that there
    is none."""

    spans: List[Ranked]
    no_answer: float


def set_answers(doc: Doc, ranking: Ranking, threshold: float, component: str) -> None:
    """Give a doc its span group "answers": the likeliest span, or none.

    doc (Doc): with a question and a context; changed in place.
    ranking (Ranking): what was found.
    threshold (float): probability of no answer above which there is none.
    component (str): name of who has found it.
    """
    best = ranking.spans[:1] if ranking.no_answer <= threshold else []
    spans = [Span(doc, start, end, label=_LABEL) for start, end, _ in best]
    # Plain types, which spaCy saves.
    attrs = {
        _CANDIDATES: [[*each] for each in ranking.spans],
        _NO_ANSWER: ranking.no_answer,
        _COMPONENT: component,
    }
    doc.spans[ANSWERS] = SpanGroup(doc, name=ANSWERS, spans=spans, attrs=attrs)


def get_component(doc: Doc) -> Optional[str]:
    """doc (Doc): any doc. RETURNS (Optional[str]): Name of the component that has answered; None if
    the doc was not asked."""
    attrs = _get_attrs(doc)
    return None if attrs is None else attrs.get(_COMPONENT)


def get_answers(doc: Doc) -> Optional[List[Answer]]:
    """doc (Doc): any doc. RETURNS (Optional[List[Answer]]): All spans that are kept, best first,
    whether they are likely or not; None if the doc was not asked."""
    attrs = _get_attrs(doc)
    pair = None if attrs is None else get_pair(doc, PAIR_NAMES)
    if attrs is None or pair is None:
        return None
    ranked = [Ranked(*each) for each in attrs[_CANDIDATES]]
    return [_make_answer(pair.second, each, attrs[_NO_ANSWER]) for each in ranked]


def get_answer(doc: Doc) -> Optional[Answer]:
    """doc (Doc): any doc. RETURNS (Optional[Answer]): The likeliest one, or that there is none;
    None if the doc was not asked."""
    answers, attrs = get_answers(doc), _get_attrs(doc)
    if answers is None or attrs is None:
        return None
    none = attrs[_NO_ANSWER]
    return answers[0] if len(doc.spans[ANSWERS]) else Answer(None, "", 0, 0, none, none)


def _get_attrs(doc: Doc) -> Optional[dict]:
    attrs = doc.spans[ANSWERS].attrs if ANSWERS in doc.spans else {}
    return attrs if _CANDIDATES in attrs else None


def _make_answer(context: Span, ranked: Ranked, no_answer: float) -> Answer:
    span = Span(context.doc, ranked.start, ranked.end, label=_LABEL)
    start, end = (place - context.start_char for place in (span.start_char, span.end_char))
    return Answer(span, span.text, start, end, ranked.probability, no_answer)
