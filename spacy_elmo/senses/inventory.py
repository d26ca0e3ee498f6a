"""`Inventory`: the senses that a word can have."""

from dataclasses import dataclass, fields
from typing import Any, Callable, Dict, List, Tuple

import srsly

from ..errors import Errors
from ..files import unpack

# WordNet's letters, and what spaCy and the Penn Treebank call them.
PARTS_OF_SPEECH = ("n", "v", "a", "r")
_BY_POS = {"NOUN": "n", "PROPN": "n", "VERB": "v", "AUX": "v", "ADJ": "a", "ADV": "r"}
_BY_TAG = {"NN": "n", "VB": "v", "JJ": "a", "RB": "r", "MD": "v", "WR": "r"}
_SOURCE = "an inventory of senses"
# English has 155,000, with 207,000 senses.
_MOST_LEMMAS = 2_000_000


@dataclass
class Inventory:
    """Senses and word forms, as plain tables, so that they travel with a pipeline.

    senses (Dict[str, List[Tuple[str, int]]]): "lemma|part of speech", the lemma in lower
        case with underscores -> keys, the first sense first, each with how often it was
        seen in the inventory's own counts.
    glosses (Dict[str, str]): key -> definition of the sense.
    exceptions (Dict[str, List[str]]): "form|part of speech" -> irregular base forms.
    endings (Dict[str, List[Tuple[str, str]]]): part of speech -> endings of forms, and
        what base forms have instead (WordNet's morphy).
    """

    senses: Dict[str, List[Tuple[str, int]]]
    glosses: Dict[str, str]
    exceptions: Dict[str, List[str]]
    endings: Dict[str, List[Tuple[str, str]]]

    def find(self, lemma: str, pos: str) -> List[Tuple[str, int]]:
        """Keys and counts of a lemma, the first sense first; none for an unknown one."""
        return self.senses.get(f"{lemma.lower().replace(' ', '_')}|{pos}", [])

    def find_form(self, form: str, pos: str) -> List[Tuple[str, int]]:
        """As `find`, of all base forms of a word as it stands in a text."""
        senses: Dict[str, int] = {}
        for lemma in self._lemmatise(form.lower().replace(" ", "_"), pos):
            senses.update(self.find(lemma, pos))
        return list(senses.items())

    def _lemmatise(self, form: str, pos: str) -> List[str]:
        irregular = self.exceptions.get(f"{form}|{pos}", [])
        regular = [
            form[: len(form) - len(old)] + new
            for old, new in self.endings.get(pos, [])
            if form.endswith(old) and len(form) > len(old)
        ]
        return list(dict.fromkeys([form, *irregular, *([] if irregular else regular)]))

    def to_bytes(self) -> bytes:
        return srsly.msgpack_dumps(vars(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Inventory":
        tables = unpack(data, _SOURCE, most_items=_MOST_LEMMAS)
        if not isinstance(tables, dict) or set(tables) != {field.name for field in fields(cls)}:
            raise ValueError(Errors.EL116.format(source=_SOURCE, error="they are no four tables"))
        checks: Dict[str, Callable[[Any], bool]] = {
            "senses": lambda rows: _are_pairs(rows, int) and all(n >= 0 for _, n in rows),
            "glosses": lambda gloss: isinstance(gloss, str),
            "exceptions": lambda forms: _are_of(forms, str),
            "endings": lambda rows: _are_pairs(rows, str),
        }
        for name, is_valid in checks.items():
            table = tables[name]
            is_table = isinstance(table, dict)
            if not is_table or not all(type(k) is str and is_valid(v) for k, v in table.items()):
                error = f"the table '{name}' has other content"
                raise ValueError(Errors.EL116.format(source=_SOURCE, error=error))
        for name in ("senses", "endings"):
            tables[name] = {k: [(a, b) for a, b in rows] for k, rows in tables[name].items()}
        return cls(**tables)


def _are_of(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(type(value) is kind for value in values)


def _are_pairs(rows: Any, kind: type) -> bool:
    """Whether these are lists of a string and another value."""
    return _are_of(rows, list) and all([type(part) for part in row] == [str, kind] for row in rows)


def map_pos(pos: str, tag: str) -> str:
    """Map a Universal part of speech, or else a Penn Treebank tag, to WordNet's letters; "" if
    nothing is annotated, "-" for a word of another kind."""
    if pos:
        return _BY_POS.get(pos, "-")
    return _BY_TAG.get(tag[:2], "-") if tag else ""
