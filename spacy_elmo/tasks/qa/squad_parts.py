"""Parts of a data set by article, and questions that their paragraph does not answer."""

import math
import re
from collections import Counter
from hashlib import blake2b
from typing import Dict, List, Sequence, Set

from ...errors import Errors
from ...utils import require_known
from .squad_json import Paragraph, Question

PARTS = ("train", "dev", "test")
_WORDS = re.compile(r"\w+")


def choose_part(paragraphs: List[Paragraph], part: str, parts: str) -> List[Paragraph]:
    """Choose the articles of a part. Articles are put in the order of a hash of their titles, which
    has nothing to do with their subjects and is the same everywhere.

    paragraphs (List[Paragraph]): of all articles.
    part (str): "train", "dev" or "test"; "" for all.
    parts (str): shares of the three, such as "8,1,1".
    RETURNS (List[Paragraph]): those of the part's articles, in their order.
    RAISES (ValueError): EL017 for another part, EL224 for shares that are none.
    """
    if not part:
        return paragraphs
    require_known("part", part, PARTS)
    shares = _parse_shares(parts)
    titles = sorted({p.title for p in paragraphs}, key=lambda title: (_hash(title), title))
    k = PARTS.index(part)
    start, end = (round(len(titles) * sum(shares[:i]) / sum(shares)) for i in (k, k + 1))
    chosen = {*titles[start:end]}
    return [paragraph for paragraph in paragraphs if paragraph.title in chosen]


def _parse_shares(parts: str) -> List[float]:
    try:
        shares = [float(share) for share in parts.split(",")]
    except ValueError:
        shares = []
    if len(shares) != len(PARTS) or min(shares) < 0 or not 0 < sum(shares) < math.inf:
        raise ValueError(Errors.EL224.format(value=parts))
    return shares


def leave_out(paragraphs: List[Paragraph], others: List[Paragraph]) -> List[Paragraph]:
    """paragraphs, others (List[Paragraph]): of two files. RETURNS (List[Paragraph]): The first
    ones whose context is none of the others', whitespace aside."""
    known = {"".join(paragraph.context.split()) for paragraph in others}
    return [p for p in paragraphs if "".join(p.context.split()) not in known]


def add_negatives(paragraphs: List[Paragraph], share: float) -> List[Paragraph]:
    """Ask some questions of another paragraph too: that of the same article which has most words
    of the question, rare ones counting more, and none of its answers (as Clark & Gardner 2018,
    section 4.1, choose paragraphs).

    paragraphs (List[Paragraph]): the data.
    share (float): of the questions, from 0 to 1, chosen by a hash of their ids.
    RETURNS (List[Paragraph]): the same, with further questions that have no answer.
    RAISES (ValueError): EL225 for a share out of range.
    """
    if not 0 <= share <= 1:
        raise ValueError(Errors.EL225.format(key="negatives", value=share))
    added: Dict[int, List[Question]] = {}
    articles: Dict[str, List[int]] = {}
    for i, paragraph in enumerate(paragraphs):
        articles.setdefault(paragraph.title, []).append(i)
    for numbers in articles.values():
        words = {i: _find_words(paragraphs[i].context) for i in numbers}
        counts = Counter(word for own in words.values() for word in own)
        weights = {word: math.log(len(numbers) / n) for word, n in counts.items()}
        for i in numbers:
            for question in paragraphs[i].questions:
                if question.answers and _hash(question.id) < share:
                    others = [k for k in numbers if k != i and _fits(question, paragraphs[k])]
                    k = _find_nearest(_find_words(question.text), others, words, weights)
                    if k >= 0:
                        negative = Question(f"{question.id}-negative", question.text, [])
                        added.setdefault(k, []).append(negative)
    return [
        paragraph._replace(questions=[*paragraph.questions, *added.get(i, [])])
        for i, paragraph in enumerate(paragraphs)
    ]


def _find_words(text: str) -> Set[str]:
    return {*_WORDS.findall(text.lower())}


def _fits(question: Question, paragraph: Paragraph) -> bool:
    context = paragraph.context.lower()
    return not any(text.lower() in context for _, text in question.answers or [])


def _find_nearest(
    asked: Set[str], numbers: Sequence[int], words: Dict[int, Set[str]], weights: Dict[str, float]
) -> int:
    """RETURNS (int): Number of the paragraph with most of the words; -1 without paragraphs."""
    # In a fixed order: sums of floats depend on it, and that of a set on the process.
    shared = {i: sum(weights[word] for word in sorted(asked & words[i])) for i in numbers}
    return max(shared, key=lambda i: (shared[i], -i), default=-1)


def _hash(text: str) -> float:
    """text (str): any. RETURNS (float): A number in [0, 1), the same everywhere."""
    return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=6).digest(), "big") / 2**48
