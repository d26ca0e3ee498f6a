"""SQuAD -> docs with a question, a context and gold answers."""

import logging
from collections import Counter
from pathlib import Path
from typing import Iterator, List, Optional

from spacy.language import Language
from spacy.tokens import Doc, Span

from ...errors import Warnings
from ..shared.text_pairs import make_pair
from .gold_answers import set_gold
from .qa_readings import PAIR_NAMES
from .squad_json import Question, read_paragraphs
from .squad_parts import add_negatives, choose_part, leave_out

logger = logging.getLogger("spacy_elmo")


def read_squad(
    nlp: Language,
    path: Path,
    *,
    part: str = "",
    parts: str = "8,1,1",
    without: str = "",
    negatives: float = 0.0,
) -> Iterator[Doc]:
    """Read SQuAD 1.1 or 2.0, XQuAD, or what has their format. Answers that begin or end inside of
    a token are learned as the tokens around them, and scored as they are in the file; how many
    there are is said (WL041).

    nlp (Language): its tokenizer is used.
    path (Path): JSON, plain or compressed.
    part (str): "train", "dev" or "test": some of the articles; "" for all.
    parts (str): shares of the three.
    without (str): another such file, whose contexts are left out.
    negatives (float): share of the questions, 0 to 1, that are asked of another paragraph of
        their article, too, which has no answer.
    YIELDS (Doc): for each question a doc with the span groups "question" and "context", and
        "answers" where the file has them.
    RAISES (ValueError): EL223 for another format, EL017, EL224 and EL225 for options that are not
        possible.
    """
    paragraphs = choose_part(read_paragraphs(path), part, parts)
    if without:
        paragraphs = leave_out(paragraphs, read_paragraphs(Path(without)))
    counts: Counter = Counter()
    for paragraph in add_negatives(paragraphs, negatives):
        for question in paragraph.questions:
            yield _make_doc(nlp, paragraph.context, question, counts)
    if counts["expanded"] or counts["absent"]:
        logger.warning(
            Warnings.WL041.format(
                path=path,
                n_answers=counts["answers"],
                n_expanded=counts["expanded"],
                n_absent=counts["absent"],
            )
        )


def _make_doc(nlp: Language, context: str, question: Question, counts: Counter) -> Doc:
    doc = make_pair(nlp, question.text, context, PAIR_NAMES, keep_space=True)
    if question.answers is None:
        return doc
    spans, texts = [], [text for _, text in question.answers]
    for start, text in question.answers:
        counts["answers"] += 1
        span = _find_span(doc, context, start, text)
        counts["absent"] += span is None
        if span is not None:
            counts["expanded"] += span.text != text.strip()
            spans.append(span)
    places = {(span.start, span.end): span for span in spans}
    set_gold(doc, [places[place] for place in sorted(places)], texts)
    return doc


def _find_span(doc: Doc, context: str, start: int, text: str) -> Optional[Span]:
    """RETURNS (Optional[Span]): The tokens of an answer; where the file is wrong about its place,
    those of its nearest one."""
    stripped = text.strip()
    start += len(text) - len(text.lstrip())
    if not stripped:
        return None
    if start < 0 or context[start : start + len(stripped)] != stripped:
        starts = _find_all(context, stripped)
        if not starts:
            return None
        start = min(starts, key=lambda place: (abs(place - start), place))
    start += doc.spans[PAIR_NAMES[1]][0].start_char
    return doc.char_span(start, start + len(stripped), alignment_mode="expand")


def _find_all(context: str, text: str) -> List[int]:
    return [i for i in range(len(context)) if context.startswith(text, i)]
