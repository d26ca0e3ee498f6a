"""Reference of all error and warning codes: text, and where they are raised."""

import re
from typing import Any, Dict, List, Tuple

from spacy_elmo.errors import Errors, Warnings

from .sources import ROOT, Sources

_INTRO = """# Errors and warnings

Every message of the library by its code. A message says what happened (with the values in place of
`{name}`), what was expected, and what to do. Codes are never reused. Errors are `EL`, warnings
`WL`: Python's `UserWarning`, or lines of the logger `spacy_elmo`, once where they would repeat.

The codes of the HTTP server, EL260 to EL269 and EL310 to EL313, are in `projects/serve/README.md`.
"""
_CODE = re.compile(r"\b(?:Errors|Warnings)\.([EW]L\d{3})\b")
_MOST_PLACES = 4


def list_messages(table: Any) -> Dict[str, str]:
    """table (Any): `Errors` or `Warnings`. RETURNS (Dict[str, str]): template by code, sorted."""
    # spaCy's metaclass puts the code before the text when an attribute is read.
    return {code: vars(table)[code] for code in sorted(vars(table)) if re.match(r"[EW]L\d", code)}


def make_page(sources: Sources) -> str:
    """sources (Sources): takes note of the files that raise. RETURNS (str): Markdown."""
    places = _find_places()
    parts = [_INTRO.strip()]
    for title, table in (("Errors", Errors), ("Warnings", Warnings)):
        parts.append(f"## {title}")
        for code, text in list_messages(table).items():
            parts.append(f"### {code}\n\n{_quote(text)}")
            links = [sources.link_line(*place) for place in places.get(code, [])[:_MOST_PLACES]]
            if links:
                parts.append(f"Source: {', '.join(links)}")
    return "\n\n".join(parts) + "\n"


def _quote(text: str) -> str:
    """The template as text: what is in braces or quoted as code stays code."""
    text = text.replace("{{", "\x00").replace("}}", "\x01")
    pieces = re.split(r"(`[^`]*`)", text)
    quoted = [
        piece if piece.startswith("`") else _escape(re.sub(r"\{(\w+)[^}]*\}", r"`{\1}`", piece))
        for piece in pieces
    ]
    return "> " + "".join(quoted).replace("\x00", "{").replace("\x01", "}").replace("\n", "\n> ")


def _escape(text: str) -> str:
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(
        piece if piece.startswith("`") else re.sub(r"([*_<>\[\]#|])", r"\\\1", piece)
        for piece in pieces
    )


def _find_places() -> Dict[str, List[Tuple[Any, int]]]:
    """Code -> files and lines that mention it."""
    places: Dict[str, List[Tuple[Any, int]]] = {}
    for path in sorted((ROOT / "spacy_elmo").rglob("*.py")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            for code in _CODE.findall(line):
                places.setdefault(code, []).append((path, number))
    return places
