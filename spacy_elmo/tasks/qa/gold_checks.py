"""Whether training data has what can be learned."""

import warnings
from typing import Iterable

from spacy.training import Example

from ...errors import Errors, Warnings
from ..shared.text_pairs import get_pair
from .gold_answers import get_gold
from .qa_readings import PAIR_NAMES


def check_data(examples: Iterable[Example], name: str, max_answer: int) -> None:
    """Look for questions with an answer, without one, and with one that is too long.

    examples (Iterable[Example]): the training data.
    name (str): of the component, for messages.
    max_answer (int): most tokens of an answer.
    RAISES (ValueError): EL222 if there is no answer, EL338 if all are too long. Warns if each
        question has one (WL040), or some are too long (WL042).
    """
    n_docs, n_pairs, n_none = 0, 0, 0
    # Tokens of the shortest answer of each question that has any.
    lengths = []
    for example in examples:
        n_docs += 1
        n_pairs += get_pair(example.reference, PAIR_NAMES) is not None
        gold = get_gold(example)
        n_none += gold is not None and not gold.texts
        if gold is not None and gold.places:
            lengths.append(min(end - start for start, end in gold.places))
    n_long = sum(length > max_answer for length in lengths)
    if lengths and n_long == len(lengths):
        raise ValueError(Errors.EL338.format(name=name, n=n_long, max_answer=max_answer))
    if not lengths:
        raise ValueError(Errors.EL222.format(name=name, n_docs=n_docs, n_pairs=n_pairs))
    if not n_none:
        warnings.warn(Warnings.WL040.format(name=name), stacklevel=3)
    if n_long:
        text = Warnings.WL042.format(
            n_questions=len(lengths), n_long=n_long, max_answer=max_answer, name=name
        )
        warnings.warn(text, stacklevel=3)
