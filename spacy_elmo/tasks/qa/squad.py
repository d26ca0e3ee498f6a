"""SQuAD's JSON -> docs with a question, a context and gold answers."""

import logging
import math
import re
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from spacy.language import Language
from spacy.tokens import Doc, Span

from ...errors import Errors, Warnings
from ...files import parse_json_object, require_file
from ...text.text_files import BOM, DAMAGED, decode, open_binary
from ...utils import require_known, require_valid
from ..shared.text_pairs import make_pair
from .answers import set_gold
from .network import PAIR_NAMES

logger = logging.getLogger("spacy_elmo")

PARTS = ("train", "dev", "test")
_WORDS = re.compile(r"\w+")
# Of a file, decompressed: SQuAD 2.0 has 42 MB.
_MOST_BYTES = 2_000_000_000


class Question(NamedTuple):
    id: str
    text: str
    # First character and text; empty for no answer, None if unknown.
    answers: Optional[List[Tuple[int, str]]]


class Paragraph(NamedTuple):
    title: str
    context: str
    questions: List[Question]


def read_squad(
    nlp: Language,
    path: Path,
    *,
    part: str = "",
    parts: str = "8,1,1",
    without: str = "",
    negatives: float = 0.0,
) -> Iterator[Doc]:
    """Read SQuAD 1.1 or 2.0, XQuAD, or files of the same format. Answers that begin or end inside
    of a token are learned as the tokens around them, and scored as they are in the file; WL041
    logs how many there are.

    nlp (Language): its tokenizer is used.
    path (Path): JSON, plain or compressed.
    part (str): "train", "dev" or "test": read only this part of the articles; "" for all.
    parts (str): shares of train, dev and test.
    without (str): another SQuAD file; contexts that it has are left out.
    negatives (float): share of the questions, 0 to 1, that are also asked of another paragraph
        of their article, one without the answer.
    YIELDS (Doc): for each question a doc with the span groups "question" and "context", and
        "answers" where the file has them.
    RAISES (ValueError): EL223 for another format, EL012 for impossible options.
    """
    paragraphs = choose_part(read_paragraphs(path), part, parts)
    if without:
        known = {"".join(p.context.split()) for p in read_paragraphs(Path(without))}
        paragraphs = [p for p in paragraphs if "".join(p.context.split()) not in known]
    counts: Counter = Counter()
    for paragraph in add_negatives(paragraphs, negatives):
        for question in paragraph.questions:
            yield _make_doc(nlp, paragraph.context, question, counts)
    if counts["n_expanded"] or counts["n_absent"]:
        sizes = {key: counts[key] for key in ("n_answers", "n_expanded", "n_absent")}
        logger.warning(Warnings.WL041.format(path=path, **sizes))


def _make_doc(nlp: Language, context: str, question: Question, counts: Counter) -> Doc:
    doc = make_pair(nlp, question.text, context, PAIR_NAMES, keep_space=True)
    if question.answers is None:
        return doc
    spans = {}
    for start, text in question.answers:
        counts["n_answers"] += 1
        span = _find_span(doc, context, start, text)
        counts["n_absent"] += span is None
        if span is not None:
            counts["n_expanded"] += span.text != text.strip()
            spans[span.start, span.end] = span
    set_gold(doc, [spans[place] for place in sorted(spans)], [text for _, text in question.answers])
    return doc


def _find_span(doc: Doc, context: str, start: int, text: str) -> Optional[Span]:
    """The tokens of an answer; if the file is wrong about its place, of the nearest occurrence."""
    stripped = text.strip()
    start += len(text) - len(text.lstrip())
    if not stripped:
        return None
    if start < 0 or context[start : start + len(stripped)] != stripped:
        starts = [i for i in range(len(context)) if context.startswith(stripped, i)]
        if not starts:
            return None
        start = min(starts, key=lambda place: (abs(place - start), place))
    start += doc.spans[PAIR_NAMES[1]][0].start_char
    return doc.char_span(start, start + len(stripped), alignment_mode="expand")


def read_paragraphs(path: Path) -> List[Paragraph]:
    """Read JSON in UTF-8, plain or compressed."""
    require_file(path)
    try:
        with open_binary(path) as file:
            content = file.read(_MOST_BYTES)
    except DAMAGED as err:
        raise ValueError(Errors.EL103.format(path=path, error=err)) from err
    # Some files begin with a byte order mark.
    content = decode(content, path, 0).lstrip(BOM).encode("utf-8")
    if not content.strip():
        return []
    paragraphs: List[Paragraph] = []
    try:
        for article in _get(parse_json_object(content), "data", list):
            for paragraph in _get(article, "paragraphs", list):
                questions = [*map(_parse_question, _get(paragraph, "qas", list))]
                title = str(article.get("title", ""))
                paragraphs.append(Paragraph(title, _get(paragraph, "context", str), questions))
    # Text with half of a surrogate pair, which JSON can write, is a ValueError.
    except ValueError as err:
        problem = f"{err}, in paragraph {len(paragraphs) + 1}"
        raise ValueError(Errors.EL223.format(path=path, problem=problem)) from err
    return paragraphs


def _parse_question(question: Any) -> Question:
    text = _get(question, "question", str)
    answers: Optional[List[Tuple[int, str]]] = None
    if "answers" in question:
        found = _get(question, "answers", list)
        answers = [(_get(a, "answer_start", int), _get(a, "text", str)) for a in found]
    if question.get("is_impossible"):
        answers = []
    return Question(str(question.get("id", text)), text, answers)


def _get(record: Any, key: str, kind: type) -> Any:
    value = record.get(key) if isinstance(record, dict) else None
    if not isinstance(value, kind):
        nouns = {list: "a list", str: "text", int: "a number"}
        raise ValueError(f"there is no '{key}' that is {nouns[kind]}")
    if isinstance(value, str):
        value.encode("utf-8")
    return value


def choose_part(paragraphs: List[Paragraph], part: str, parts: str) -> List[Paragraph]:
    """Choose the articles of a part, "" for all, by a hash of their titles, which is the same
    everywhere. parts (str): shares of train, dev and test."""
    if not part:
        return paragraphs
    require_known("part", part, PARTS)
    try:
        shares = [float(share) for share in parts.split(",")]
    except ValueError:
        shares = []
    is_valid = len(shares) == len(PARTS) and min(shares) >= 0 and 0 < sum(shares) < math.inf
    expected = "shares of train, dev and test, at least 0, such as '8,1,1'"
    require_valid(is_valid, "parts", parts, expected)
    titles = sorted({p.title for p in paragraphs}, key=lambda title: (_hash(title), title))
    k = PARTS.index(part)
    start, end = (round(len(titles) * sum(shares[:i]) / sum(shares)) for i in (k, k + 1))
    chosen = {*titles[start:end]}
    return [paragraph for paragraph in paragraphs if paragraph.title in chosen]


def add_negatives(paragraphs: List[Paragraph], share: float) -> List[Paragraph]:
    """Ask a share of the questions, chosen by a hash of their ids, of another paragraph, too: of
    their article, the one with most of their words, weighted by rarity, and none of their answers
    (as Clark & Gardner 2018, section 4.1, choose paragraphs)."""
    require_valid(0 <= share <= 1, "negatives", share, "a number from 0 to 1")
    added: Dict[int, List[Question]] = {}
    articles: Dict[str, List[int]] = {}
    for i, paragraph in enumerate(paragraphs):
        articles.setdefault(paragraph.title, []).append(i)
    for numbers in articles.values():
        words = {i: {*_WORDS.findall(paragraphs[i].context.lower())} for i in numbers}
        counts = Counter(word for own in words.values() for word in own)
        weights = {word: math.log(len(numbers) / n) for word, n in counts.items()}
        for i in numbers:
            for question in paragraphs[i].questions:
                if not question.answers or _hash(question.id) >= share:
                    continue
                asked, shared = {*_WORDS.findall(question.text.lower())}, {}
                for k in numbers:
                    context = paragraphs[k].context.lower()
                    if k != i and not any(text.lower() in context for _, text in question.answers):
                        # Sorted: sums of floats depend on their order, and that of a set varies.
                        shared[k] = sum(weights[word] for word in sorted(asked & words[k]))
                if shared:
                    nearest = max(shared, key=lambda k: (shared[k], -k))
                    negative = Question(f"{question.id}-negative", question.text, [])
                    added.setdefault(nearest, []).append(negative)
    return [
        paragraph._replace(questions=[*paragraph.questions, *added.get(i, [])])
        for i, paragraph in enumerate(paragraphs)
    ]


def _hash(text: str) -> float:
    """A number in [0, 1), the same everywhere."""
    return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=6).digest(), "big") / 2**48
