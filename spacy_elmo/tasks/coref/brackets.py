"""Mentions as published files mark them: brackets with the cluster's name, token by token."""

import re
from typing import Dict, List, Sequence, Tuple

from ...utils import show_name
from .clusters import Cluster

# "(3)", "(3" and "3)"; several of them stand together or with "|" between.
_PIECE = re.compile(r"(?:\(([^()|]+)\)|\(([^()|]+)|([^()|]+)\))\|*")
_NOTHING = {"", "-", "_"}
# A mention in parts, one after the other: "e1[1/2]", "e1[2/2]".
_PART = re.compile(r"(.+)\[(\d+)/(\d+)\]")


def split_brackets(cell: str) -> List[Tuple[str, str]]:
    """cell (str): the brackets at a token, such as "(3|(1)", or "-".
    RETURNS (List[Tuple[str, str]]): kind, "one", "open" or "close", and name of the cluster.
    RAISES (ValueError): with the cell, if it is something else. Readers give it as EL197.
    """
    if cell.strip() in _NOTHING:
        return []
    kinds = ("one", "open", "close")
    found: List[Tuple[str, str]] = []
    cell = cell.strip("|")
    end = 0
    # From end to end: a search would try every character of a long cell.
    while end < len(cell):
        match = _PIECE.match(cell, end)
        if match is None:
            raise ValueError(f"'{show_name(cell)}' is no bracket such as (3, 3) or (3)")
        found += [(kind, _name(name)) for kind, name in zip(kinds, match.groups()) if name]
        end = match.end()
    return found


def _name(text: str) -> str:
    # GUM's own files say more of an entity: "(3-person-giv:act".
    return text.partition("-")[0]


class OpenBrackets:
    """The brackets of a document, read token after token."""

    def __init__(self) -> None:
        self.clusters: Dict[str, Cluster] = {}
        self._opened: Dict[str, List[int]] = {}
        # Cluster and number of parts -> where the first one begins.
        self._in_parts: Dict[Tuple[str, str], int] = {}

    def read(self, i: int, cell: str) -> None:
        """i (int): the token. cell (str): its brackets. RAISES (ValueError): if one closes that is
        not open."""
        for kind, name in split_brackets(cell):
            if kind == "one":
                self._add(name, i, i + 1)
            elif kind == "open":
                self._opened.setdefault(name, []).append(i)
            elif not self._opened.get(name):
                raise ValueError(f"the mention of {name} that ends here has no beginning")
            else:
                # Of two mentions of one cluster the inner one ends first.
                self._add(name, self._opened[name].pop(), i + 1)

    def _add(self, name: str, start: int, end: int) -> None:
        """A mention in parts is one from the first to the last: a span has no holes."""
        part = _PART.fullmatch(name)
        if part is not None:
            name, number, n_parts = part.groups()
            self._in_parts.setdefault((name, n_parts), start)
            if number != n_parts:
                return
            start = self._in_parts.pop((name, n_parts))
        self.clusters.setdefault(name, []).append((start, end))

    def close(self) -> Sequence[Cluster]:
        """RETURNS (Sequence[Cluster]): The clusters. RAISES (ValueError): if a bracket is open."""
        names = sorted(name for name, starts in self._opened.items() if starts)
        names += sorted(name for name, _ in self._in_parts)
        if names:
            raise ValueError(f"mentions of {', '.join(names)} have no end")
        return list(self.clusters.values())
