"""Pairs of texts with a label: SNLI, MultiNLI and files of the same format."""

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ...text.formats import line_error, read_lines
from ...utils import show_names
from ..shared.annotations import make_cats
from ..shared.text_pairs import make_pair

LABELS = ("entailment", "neutral", "contradiction")
PAIR_NAMES = ("premise", "hypothesis")
# Names of columns in the published files.
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
        # The tokenizer raises one for half of a surrogate pair, which JSON can write.
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
        raise ValueError(f"the label '{label}' is not one of {', '.join(LABELS)}")
    doc = make_pair(nlp, premise, hypothesis, PAIR_NAMES)
    doc.cats = make_cats(LABELS, label)
    return doc


def _find(record: Mapping[str, Any], names: Tuple[str, ...]) -> Optional[str]:
    found = [name for name in names if record.get(name) is not None]
    if not found:
        return None
    value = record[found[0]]
    if isinstance(value, (list, dict)):
        raise ValueError(f"'{found[0]}' is not text")
    return str(value)


def _read_records(path: Path) -> Iterator[Tuple[int, Dict[str, Any]]]:
    names: Optional[List[str]] = None
    is_json = False
    for number, text in read_lines(path):
        if not text.strip():
            continue
        # Published tables quote nothing: a quotation mark is text.
        cells = [cell.strip() for cell in text.split("\t")]
        is_first = not is_json and names is None
        is_json = is_json or (is_first and text.lstrip().startswith("{"))
        if is_json:
            yield number, _parse(path, number, text)
        elif names is None:
            names = cells
            if not all({*names} & {*known} for known in (_PREMISE, _HYPOTHESIS, _LABEL)):
                problem = f"not a JSON object, nor names of columns: {show_names(names)}"
                raise line_error(path, number, f"{problem}, expected premise, hypothesis and label")
        elif len(cells) > len(names):
            # A tab in a text would shift the cells.
            problem = f"columns: {len(cells)}, the first line names {len(names)}"
            raise line_error(path, number, problem)
        else:
            yield number, dict(zip(names, cells))


def _parse(path: Path, number: int, text: str) -> Dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as err:
        raise line_error(path, number, f"not JSON ({err})") from err
    if not isinstance(record, dict):
        raise line_error(path, number, "not a JSON object {...}")
    return record
