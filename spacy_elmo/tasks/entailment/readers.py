"""Pairs of texts with a label: SNLI, MultiNLI and files of the same format."""

from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from spacy.language import Language
from spacy.tokens import Doc

from ...files import parse_json_object
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
    # Names of the columns of a table; none for JSON.
    names: Optional[List[str]] = None
    for number, text in read_lines(path):
        if not text.strip():
            continue
        try:
            if names is None:
                names = [] if text.lstrip().startswith("{") else _read_names(text)
                if names:
                    continue
            record = _read_cells(text, names) if names else parse_json_object(text.encode("utf-8"))
            doc = _make_doc(nlp, record)
        # The tokenizer raises one for half of a surrogate pair, which JSON can write.
        except ValueError as err:
            raise line_error(path, number, str(err)) from err
        if doc is not None:
            yield doc


def _read_names(text: str) -> List[str]:
    names = [cell.strip() for cell in text.split("\t")]
    if not all({*names} & {*known} for known in (_PREMISE, _HYPOTHESIS, _LABEL)):
        problem = f"not a JSON object, nor names of columns: {show_names(names)}"
        raise ValueError(f"{problem}, expected premise, hypothesis and label")
    return names


def _read_cells(text: str, names: List[str]) -> Dict[str, str]:
    # Published tables quote nothing: a quotation mark is text.
    cells = [cell.strip() for cell in text.split("\t")]
    if len(cells) > len(names):
        # A tab in a text would shift the cells.
        raise ValueError(f"columns: {len(cells)}, the first line names {len(names)}")
    return dict(zip(names, cells))


def _make_doc(nlp: Language, record: Mapping[str, Any]) -> Optional[Doc]:
    premise, hypothesis, label = (_find(record, n) for n in (_PREMISE, _HYPOTHESIS, _LABEL))
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
    value = next((record[name] for name in names if record.get(name) is not None), None)
    if isinstance(value, (list, dict)):
        raise ValueError(f"'{names[0]}' is not text")
    return None if value is None else str(value)
