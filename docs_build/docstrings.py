"""Docstrings of this project, parsed: `name (type): text. RETURNS (type): text. RAISES ...`."""

import inspect
import re
import textwrap
from dataclasses import dataclass, field
from typing import Any, Collection, Dict, List, Tuple

_KEYWORDS = ("RETURNS", "YIELDS", "RAISES")
_NAMES = r"[A-Za-z_]\w*(?:,\s+[A-Za-z_]\w*)*"
_TYPE = r"\((?P<type>[^()]*(?:\([^()]*\)[^()]*)*)\)"
# An entry with a type may begin after any sentence, one without at the start of a line only.
_TYPED = re.compile(rf"(?:^|(?<=[.:;] )|(?<=\n))(?P<names>{_NAMES})\s{_TYPE}:\s", re.MULTILINE)
_UNTYPED = re.compile(rf"^(?P<names>{_NAMES}):\s", re.MULTILINE)
_EXAMPLE = re.compile(r"^EXAMPLES?:\n(?P<code>(?:[ ]+.*\n?|\n)+)", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """A parameter, result or error in a docstring: its type as written, or "", and its text."""

    type: str = ""
    text: str = ""


@dataclass(frozen=True)
class Docstring:
    """The parts of a docstring. summary is its first paragraph, notes are the other ones."""

    summary: str = ""
    notes: str = ""
    parameters: Dict[str, Entry] = field(default_factory=dict)
    outcomes: List[Tuple[str, Entry]] = field(default_factory=list)
    example: str = ""


def read_docstring(thing: Any, parameters: Collection[str] = ()) -> Docstring:
    """Parse a docstring.

    thing (Any): a class or a function.
    parameters (Collection[str]): names that are entries also if they have no type.
    RETURNS (Docstring): its parts, all empty if there is no docstring.
    """
    text = inspect.cleandoc(thing.__doc__ or "") + "\n"
    example = _EXAMPLE.search(text)
    paragraphs: List[str] = []
    entries: List[Tuple[str, Entry]] = []
    for paragraph in _EXAMPLE.sub("", text).split("\n\n"):
        starts = {match.start(): match for match in _TYPED.finditer(paragraph)}
        for match in _UNTYPED.finditer(paragraph):
            if set(re.split(r",\s+", match["names"])) <= {*parameters, *_KEYWORDS}:
                starts.setdefault(match.start(), match)
        places = sorted(starts)
        before = paragraph[: places[0] if places else None].strip()
        if before:
            paragraphs.append(_join(before))
        elif not paragraphs:
            paragraphs.append("")  # no summary
        for place, end in zip(places, [*places[1:], len(paragraph)]):
            match = starts[place]
            entry = Entry(match.groupdict().get("type") or "", _join(paragraph[match.end() : end]))
            entries += [(name, entry) for name in re.split(r",\s+", match["names"])]
    return Docstring(
        paragraphs[0],
        "\n\n".join(paragraphs[1:]),
        {name: entry for name, entry in entries if name not in _KEYWORDS},
        [(name, entry) for name, entry in entries if name in _KEYWORDS],
        textwrap.dedent(example["code"]).strip() if example else "",
    )


def _join(text: str) -> str:
    """Text on one line; lists keep their lines."""
    text = text.strip()
    if re.search(r"^\s*(?:[-*]|\d\.) ", text, re.MULTILINE):
        return text
    return re.sub(r"\s+", " ", text)
