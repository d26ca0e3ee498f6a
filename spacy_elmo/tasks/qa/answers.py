"""Answers of a doc, predicted and gold, in the span group "answers"; and the scores of SQuAD."""

import re
import string
from collections import Counter
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence

from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

from ...errors import Errors
from ..shared.annotations import Place
from ..shared.text_pairs import get_pair
from .network import PAIR_NAMES, Ranked

ANSWERS = "answers"
_LABEL = "answer"
# Attributes of the span group.
_CANDIDATES, _NO_ANSWER, _COMPONENT, _TEXTS = "candidates", "no_answer", "component", "texts"
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class Answer(NamedTuple):
    """An answer, or that the context has none: then `span` is None, and `text` is ""."""

    span: Optional[Span]
    text: str
    # Its characters in the context: `context[start:end] == text`.
    start: int
    end: int
    # The probabilities of all spans and of no answer sum to 1.
    probability: float
    no_answer: float


class Ranking(NamedTuple):
    """The likeliest spans, best first, and the probability of no answer."""

    spans: List[Ranked]
    no_answer: float


class Gold(NamedTuple):
    """Gold answers that can be learned, as tokens of the predicted doc; and the official texts,
    empty for a question without an answer."""

    places: List[Place]
    texts: List[str]


def set_answers(doc: Doc, ranking: Ranking, threshold: float, component: str) -> None:
    """Set the span group "answers": the likeliest span, or none if no answer is likelier than
    `threshold`."""
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
    """Name of the component that has set the answers; None without a prediction."""
    return _get_attrs(doc).get(_COMPONENT)


def get_answers(doc: Doc) -> Optional[List[Answer]]:
    """The spans that were kept, best first, whatever the probability of no answer; None without a
    prediction."""
    attrs = _get_attrs(doc)
    pair = get_pair(doc, PAIR_NAMES) if attrs else None
    if pair is None:
        return None
    answers = []
    for first, last, probability in attrs[_CANDIDATES]:
        span = Span(doc, first, last, label=_LABEL)
        start, end = (c - pair.second.start_char for c in (span.start_char, span.end_char))
        answers.append(Answer(span, span.text, start, end, probability, attrs[_NO_ANSWER]))
    return answers


def get_answer(doc: Doc) -> Optional[Answer]:
    """The likeliest answer, which may be no answer; None without a prediction."""
    answers = get_answers(doc)
    if answers is None:
        return None
    none = _get_attrs(doc)[_NO_ANSWER]
    return answers[0] if len(doc.spans[ANSWERS]) else Answer(None, "", 0, 0, none, none)


def _get_attrs(doc: Doc) -> dict:
    """Attributes of predicted answers; empty without a prediction."""
    attrs = doc.spans[ANSWERS].attrs if ANSWERS in doc.spans else {}
    return attrs if _CANDIDATES in attrs else {}


def set_gold(doc: Doc, spans: Sequence[Span], texts: Optional[Sequence[str]] = None) -> None:
    """Set the gold answers of a doc, each as good; none for a question without one. texts
    (Optional[Sequence[str]]): answers to score with, if they differ from the spans."""
    attrs = {} if texts is None else {_TEXTS: [*texts]}
    labelled = [Span(doc, span.start, span.end, label=_LABEL) for span in spans]
    doc.spans[ANSWERS] = SpanGroup(doc, name=ANSWERS, spans=labelled, attrs=attrs)


def get_gold(example: Example) -> Optional[Gold]:
    """Find the gold answers of an example: None if the reference has no pair, or no span group
    "answers"."""
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
            text = Errors.EL196.format(
                text=reference.text[:50],
                problem=f"the answer '{span.text[:50]}' is outside of the context",
                fix="Put the spans of the group 'answers' inside the span of 'context'",
            )
            raise ValueError(text)
    texts: Any = group.attrs.get(_TEXTS)
    aligned = example.get_aligned_spans_y2x(spans, allow_overlap=True)
    places = sorted({(span.start, span.end) for span in aligned})
    return Gold(places, [span.text for span in spans] if texts is None else list(texts))


def normalize_answer(text: str) -> str:
    """Lower case, without ASCII punctuation and articles, with single spaces (`normalize_answer` of
    SQuAD's evaluate-v1.1.py)."""
    text = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def score_exact(predicted: str, gold: str) -> float:
    """1 if two answers are the same, normalised."""
    return float(normalize_answer(predicted) == normalize_answer(gold))


def score_f1(predicted: str, gold: str) -> float:
    """F1 over the normalised words of two answers. As in evaluate-v1.1.py, 0 if either has none."""
    words, right = normalize_answer(predicted).split(), normalize_answer(gold).split()
    n_same = sum((Counter(words) & Counter(right)).values())
    return 2 * n_same / (len(words) + len(right)) if n_same else 0.0


def score_qa(examples: Iterable[Example], **cfg: Any) -> Dict[str, Any]:
    """Score answers by exact match and F1 as the official scripts of SQuAD 1.1 and 2.0: the best of
    a question's gold answers counts; without one, no answer is right.

    examples (Iterable[Example]): those without gold answers do not count; a doc without a
        prediction counts as no answer.
    RETURNS (Dict[str, Any]): `qa_em` and `qa_f1` over all questions; `qa_has_answer_em`,
        `qa_has_answer_f1` and `qa_no_answer_acc` over those with and without an answer. From 0 to
        1; None if nothing counts.
    """
    exact, f1, lacking = [], [], []
    for example in examples:
        gold = get_gold(example)
        if gold is None:
            continue
        answer = get_answer(example.predicted)
        text = answer.text if answer else ""
        if gold.texts:
            exact.append(max(score_exact(text, right) for right in gold.texts))
            f1.append(max(score_f1(text, right) for right in gold.texts))
        else:
            lacking.append(float(not text))
    return {
        "qa_em": _mean(exact + lacking),
        "qa_f1": _mean(f1 + lacking),
        "qa_has_answer_em": _mean(exact),
        "qa_has_answer_f1": _mean(f1),
        "qa_no_answer_acc": _mean(lacking),
    }


def _mean(values: List[float]) -> Optional[float]:
    return sum(values) / len(values) if values else None


def make_qa_scorer() -> Callable:
    """RETURNS (Callable): `score_qa`, for a config."""
    return score_qa
