"""`Inventory`: which senses a word can have."""

from dataclasses import dataclass
from typing import Dict, List, Tuple

import srsly

# WordNet's letters, and what spaCy and the Penn Treebank call them.
PARTS_OF_SPEECH = ("n", "v", "a", "r")
_BY_POS = {"NOUN": "n", "PROPN": "n", "VERB": "v", "AUX": "v", "ADJ": "a", "ADV": "r"}
_BY_TAG = {"NN": "n", "VB": "v", "JJ": "a", "RB": "r", "MD": "v", "WR": "r"}


@dataclass
class Inventory:
    """Senses and word forms, as plain tables, so that they travel with a pipeline.

    senses (Dict[str, List[Tuple[str, int]]]): "lemma|part of speech", the lemma in lower
        case with underscores -> keys, the first sense first, each with how often it was
        seen in the inventory's own counts.
    glosses (Dict[str, str]): key -> what the sense is.
    exceptions (Dict[str, List[str]]): "form|part of speech" -> irregular base forms.
    endings (Dict[str, List[Tuple[str, str]]]): part of speech -> endings of forms, and
        what base forms have instead (WordNet's morphy).
    """

    senses: Dict[str, List[Tuple[str, int]]]
    glosses: Dict[str, str]
    exceptions: Dict[str, List[str]]
    endings: Dict[str, List[Tuple[str, str]]]

    def find(self, lemma: str, pos: str) -> List[Tuple[str, int]]:
        """lemma (str): a base form. pos (str): n, v, a or r. RETURNS (List[Tuple[str, int]]):
        keys and counts, the first sense first; none for an unknown lemma."""
        return self.senses.get(f"{lemma.lower().replace(' ', '_')}|{pos}", [])

    def find_form(self, form: str, pos: str) -> List[Tuple[str, int]]:
        """form (str): a word as it stands in a text. pos (str): n, v, a or r. RETURNS
        (List[Tuple[str, int]]): as `find`, of all its base forms."""
        found: Dict[str, int] = {}
        for lemma in self._lemmatise(form.lower().replace(" ", "_"), pos):
            found.update(self.find(lemma, pos))
        return list(found.items())

    def has_form(self, form: str) -> bool:
        """form (str): a word. RETURNS (bool): Whether it can have a sense."""
        return any(self.find_form(form, pos) for pos in PARTS_OF_SPEECH)

    def _lemmatise(self, form: str, pos: str) -> List[str]:
        irregular = self.exceptions.get(f"{form}|{pos}", [])
        regular = [
            form[: len(form) - len(old)] + new
            for old, new in self.endings.get(pos, [])
            if form.endswith(old) and len(form) > len(old)
        ]
        return list(dict.fromkeys([form, *irregular, *([] if irregular else regular)]))

    def to_bytes(self) -> bytes:
        """RETURNS (bytes): the tables."""
        return srsly.msgpack_dumps(vars(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> "Inventory":
        """data (bytes): from `to_bytes`. RETURNS (Inventory): the same tables."""
        tables = srsly.msgpack_loads(data)
        for key in ("senses", "endings"):
            tables[key] = {k: [(a, b) for a, b in rows] for k, rows in tables[key].items()}
        return cls(**tables)


def map_pos(pos: str, tag: str) -> str:
    """Map spaCy's annotation to WordNet's letters.

    pos (str): a Universal part of speech, or "".
    tag (str): a Penn Treebank tag, or "".
    RETURNS (str): n, v, a or r; "" if nothing is annotated, "-" for a word of another kind.
    """
    if pos:
        return _BY_POS.get(pos, "-")
    return _BY_TAG.get(tag[:2], "-") if tag else ""
