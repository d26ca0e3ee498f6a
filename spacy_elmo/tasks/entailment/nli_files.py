"""Pairs of texts with a label: SNLI, MultiNLI and what looks like them."""

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ...text.formats import Line, line_error, read_lines
from ...utils import show_names
from ..shared.categories import make_cats
from ..shared.text_pairs import make_pair

LABELS = ("entailment", "neutral", "contradiction")
PAIR_NAMES = ("premise", "hypothesis")
# Names that the published files have.
_PREMISE, _HYPOTHESIS = ("premise", "sentence1"), ("hypothesis", "sentence2")
_LABEL = ("gold_label", "label")
# Annotators did not agree.
_NO_LABEL = ("-", "-1", "")
_NUMBERED = {str(i): label for i, label in enumerate(LABELS)}


def read_snli(nlp: Language, path: Path) -> Iterator[Doc]:
    """Read SNLI or MultiNLI: JSON lines, or a table with tabs and names in its first line. Pairs
    on whose label the annotators did not agree ("-") are left out.

    nlp (Language): its tokenizer is used.
    path (Path): plain or compressed; a table unless its first line begins with "{".
    YIELDS (Doc): a pair with the span groups "premise" and "hypothesis", and `cats`.
    RAISES (ValueError): EL197 for a line without texts or with another label.
    """
    for number, record in _read_records(path):
        try:
            doc = _make_doc(nlp, record)
        # Of the tokenizer, too: JSON can write half of a surrogate pair.
        except ValueError as err:
            raise line_error(path, number, str(err)) from err
        if doc is not None:
            yield doc


def _make_doc(nlp: Language, record: Mapping[str, Any]) -> Optional[Doc]:
    premise, hypothesis = (_find(record, names) for names in (_PREMISE, _HYPOTHESIS))
    label = _find(record, _LABEL)
    if premise is None or hypothesis is None or label is None:
        names = ", ".join(map(str, record))
        raise ValueError(f"it has {names}, expected premise, hypothesis and label")
    if label in _NO_LABEL:
        return None
    label = _NUMBERED.get(label, label)
    if label not in LABELS:
        raise ValueError(f"the label '{label}' is none of {', '.join(LABELS)}")
    doc = make_pair(nlp, premise, hypothesis, PAIR_NAMES)
    doc.cats = make_cats(LABELS, label)
    return doc


def _find(record: Mapping[str, Any], names: Tuple[str, ...]) -> Optional[str]:
    """RAISES (ValueError): for a list or an object."""
    found = [name for name in names if record.get(name) is not None]
    if not found:
        return None
    value = record[found[0]]
    if isinstance(value, (list, dict)):
        raise ValueError(f"'{found[0]}' is no text")
    return str(value)


def _read_records(path: Path) -> Iterator[Tuple[int, Dict[str, Any]]]:
    lines = ((number, text) for number, text in read_lines(path) if text.strip())
    first = next(lines, None)
    if first is None:
        return
    if first[1].lstrip().startswith("{"):
        yield _parse(path, first)
        yield from (_parse(path, line) for line in lines)
        return
    names = _split(first[1])
    if not all({*names} & {*known} for known in (_PREMISE, _HYPOTHESIS, _LABEL)):
        problem = f"no JSON object, nor names of columns: {show_names(names)}"
        raise line_error(path, first[0], f"{problem}, expected premise, hypothesis and label")
    for number, text in lines:
        cells = _split(text)
        if len(cells) > len(names):
            # A tab in a text: who shifts the cells has another text.
            problem = f"columns: {len(cells)}, the first line names {len(names)}"
            raise line_error(path, number, problem)
        yield number, dict(zip(names, cells))


def _split(text: str) -> List[str]:
    # Published tables quote nothing: a quotation mark is text.
    return [cell.strip() for cell in text.split("\t")]


def _parse(path: Path, line: Line) -> Tuple[int, Dict[str, Any]]:
    number, text = line
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as err:
        raise line_error(path, number, f"no JSON ({err})") from err
    if not isinstance(record, dict):
        raise line_error(path, number, "no JSON object {...}")
    return number, record
