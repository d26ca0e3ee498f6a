"""What the network reads of a doc: its question, and its context in windows."""

import random
from typing import List, NamedTuple, Sequence

from spacy.tokens import Doc, Span

from ...errors import Errors
from ..shared.places import Place
from ..shared.text_pairs import get_pair

PAIR_NAMES = ("question", "context")


class QAReading(NamedTuple):
    """What is read of a doc.

    doc (Doc): the doc.
    question (Place): the question.
    windows (List[Place]): of the context, in order; none if the doc has no pair, or a question
        or a context without words.
    """

    doc: Doc
    question: Place
    windows: List[Place]


def require_windows(window: int, stride: int, max_answer: int) -> None:
    """window, stride, max_answer (int): settings of the component. RAISES (ValueError): EL220
    unless each answer lies whole in some window."""
    most = window - max_answer + 1
    if max_answer < 1 or not 1 <= stride <= most:
        text = Errors.EL220.format(window=window, stride=stride, max_answer=max_answer, most=most)
        raise ValueError(text)


def read_doc(doc: Doc, window: int, stride: int) -> QAReading:
    """Plan to read all of a doc.

    doc (Doc): any doc.
    window (int): most tokens of a window, and of the question, whose rest is not read.
    stride (int): tokens from the start of a window to that of the next one.
    RETURNS (QAReading): without windows if there is nothing to be answered.
    """
    pair = get_pair(doc, PAIR_NAMES)
    if pair is None or not all(map(_has_words, pair)):
        return QAReading(doc, (0, 0), [])
    question, context = pair
    asked = question.start, min(question.end, question.start + window)
    return QAReading(doc, asked, cut_context(context.start, context.end, window, stride))


def _has_words(span: Span) -> bool:
    return any(not token.is_space for token in span)


def cut_context(start: int, end: int, window: int, stride: int) -> List[Place]:
    """start, end (int): tokens. window, stride (int): see `read_doc`. RETURNS (List[Place]):
    windows that cover them, at least one."""
    places = [(start, min(start + window, end))]
    while places[-1][1] < end:
        start += stride
        places.append((start, min(start + window, end)))
    return places


def choose_windows(reading: QAReading, answers: Sequence[Place], most: int) -> QAReading:
    """Choose what to learn from: windows with an answer, and random ones without, so that a long
    context costs no more than a short one.

    reading (QAReading): of the whole doc.
    answers (Sequence[Place]): gold answers; none if the question has none.
    most (int): windows to be kept.
    RETURNS (QAReading): with at least one window that has an answer, if there is any.
    """
    windows = reading.windows
    if len(windows) <= most:
        return reading
    having = [w for w in windows if any(w[0] <= start and end <= w[1] for start, end in answers)]
    others = [w for w in windows if w not in having]
    kept = random.sample(having, min(len(having), max(1, most - 1)))
    kept += random.sample(others, min(len(others), most - len(kept)))
    return reading._replace(windows=sorted(kept))
