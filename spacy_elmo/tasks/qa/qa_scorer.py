"""Exact match and F1 of answers, as in the official scripts of SQuAD 1.1 and 2.0."""

import re
import string
from collections import Counter
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence

from spacy.training import Example

from .answers import get_answer
from .gold_answers import get_gold

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class _Result(NamedTuple):
    exact: float
    f1: float
    has_answer: bool


def normalize_answer(text: str) -> str:
    """text (str): an answer. RETURNS (str): In lower case, without ASCII punctuation and articles,
    with single spaces (`normalize_answer` of evaluate-v1.1.py)."""
    text = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def score_exact(predicted: str, gold: str) -> float:
    """predicted, gold (str): answers. RETURNS (float): 1 if they are the same, normalised."""
    return float(normalize_answer(predicted) == normalize_answer(gold))


def score_f1(predicted: str, gold: str) -> float:
    """predicted, gold (str): answers. RETURNS (float): F1 over their words, normalised. As in
    evaluate-v1.1.py, 0 if no words are left of either."""
    words, right = normalize_answer(predicted).split(), normalize_answer(gold).split()
    n_same = sum((Counter(words) & Counter(right)).values())
    return 2 * n_same / (len(words) + len(right)) if n_same else 0.0


def score_answer(predicted: str, golds: Sequence[str]) -> _Result:
    """predicted (str): an answer, "" for none. golds (Sequence[str]): right ones, of which the
    best counts; none for a question without an answer, for which saying so is right
    (evaluate-v2.0.py). RETURNS (_Result): the scores of a question."""
    if not golds:
        right = float(not predicted)
        return _Result(right, right, False)
    exact = max(score_exact(predicted, gold) for gold in golds)
    return _Result(exact, max(score_f1(predicted, gold) for gold in golds), True)


def score_qa(examples: Iterable[Example], **cfg: Any) -> Dict[str, Any]:
    """Score the answers of docs. A doc that was not asked has said that there is no answer.

    examples (Iterable[Example]): those without gold answers do not count.
    **cfg (Any): what spaCy gives to scorers; not used.
    RETURNS (Dict[str, Any]): `qa_em` and `qa_f1` over all questions; `qa_has_answer_em`,
        `qa_has_answer_f1` and `qa_no_answer_acc` over those with and without an answer. From 0 to
        1; None if nothing counts.
    RAISES (ValueError): EL199 if docs to be predicted lack their pairs, EL221 for a gold answer
        outside of its context.
    """
    results = []
    for example in examples:
        gold = get_gold(example)
        if gold is not None:
            answer = get_answer(example.predicted)
            results.append(score_answer(answer.text if answer else "", gold.texts))
    having = [result for result in results if result.has_answer]
    return {
        "qa_em": _mean([result.exact for result in results]),
        "qa_f1": _mean([result.f1 for result in results]),
        "qa_has_answer_em": _mean([result.exact for result in having]),
        "qa_has_answer_f1": _mean([result.f1 for result in having]),
        "qa_no_answer_acc": _mean([result.exact for result in results if not result.has_answer]),
    }


def _mean(values: List[float]) -> Optional[float]:
    return sum(values) / len(values) if values else None


def make_qa_scorer() -> Callable:
    """RETURNS (Callable): `score_qa`, for a config."""
    return score_qa
