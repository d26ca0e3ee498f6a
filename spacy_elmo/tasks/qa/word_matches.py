"""Which words stand in a question and in its context, too (Weissenborn et al. 2017)."""

from typing import List, Sequence, Tuple

from spacy.tokens import Doc

from .qa_readings import Place

# Stands for what is no word: no form but "" has this hash.
_NO_WORD = 0


def find_matches(parts: Sequence[Tuple[Doc, Place, Place]]) -> List[bool]:
    """parts (Sequence[Tuple[Doc, Place, Place]]): docs, each with a question and a window of its
    context. RETURNS (List[bool]): for each token of all questions, then for each of all windows,
    whether it is a word of both, in upper or lower case."""
    asked: List[bool] = []
    read: List[bool] = []
    for doc, question, window in parts:
        question_words, window_words = (_get_words(doc, *place) for place in (question, window))
        for words, others, matches in (
            (question_words, set(window_words), asked),
            (window_words, set(question_words), read),
        ):
            matches.extend(word != _NO_WORD and word in others for word in words)
    return asked + read


def _get_words(doc: Doc, start: int, end: int) -> List[int]:
    """RETURNS (List[int]): Of each token the hash of its form in lower case."""
    return [_NO_WORD if t.is_punct or t.is_space else t.lower for t in doc[start:end]]
