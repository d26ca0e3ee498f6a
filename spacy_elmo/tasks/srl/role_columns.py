"""A column of brackets, one for each predicate -> labelled spans."""

import re
from typing import List, Sequence, Tuple

from ..shared.bio_tags import LabelledSpan
from .frames import VERB

# "(A1*", "*", "*)", "(V*)", and "*A1)" as of 2004.
_CELL = re.compile(r"((?:\([^()*\s]+)*)\*((?:[^()*\s]*\))*)")


def is_bracket(cell: str) -> bool:
    """cell (str): of a table. RETURNS (bool): whether it can be of such a column."""
    return _CELL.fullmatch(cell) is not None


def read_brackets(cells: Sequence[str]) -> List[LabelledSpan]:
    """Read the column of a predicate.

    cells (Sequence[str]): one for each token.
    RETURNS (List[LabelledSpan]): its spans, in order; one of them is labelled "V".
    RAISES (ValueError): with a clause for a message, if it is no such column.
    """
    spans: List[LabelledSpan] = []
    opened: List[Tuple[int, str]] = []
    for i, cell in enumerate(cells):
        match = _CELL.fullmatch(cell)
        if match is None:
            raise ValueError(f"'{cell}' is no cell such as (ARG1*, * or *)")
        opened += [(i, label) for label in match[1].split("(")[1:]]
        for _ in range(match[2].count(")")):
            if not opened:
                raise ValueError(f"'{cell}' closes a bracket that was not opened")
            start, label = opened.pop()
            spans.append(LabelledSpan(start, i + 1, label))
    if opened:
        raise ValueError(f"the bracket of {opened[0][1]} is never closed")
    if sum(span.label == VERB for span in spans) != 1:
        raise ValueError("a predicate's column has not exactly one (V*)")
    return sorted(spans)
