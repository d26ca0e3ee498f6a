"""Docstrings of this project, taken apart: `name (type): text. RETURNS (type): text. RAISES`."""

import inspect
import re
import textwrap
from dataclasses import dataclass, field
from typing import Any, Collection, Dict, List, Tuple

_KEYWORDS = ("RETURNS", "YIELDS", "RAISES")
_NAMES = r"[A-Za-z_]\w*(?:,\s+[A-Za-z_]\w*)*"
_TYPE = r"\((?P<type>[^()]*(?:\([^()]*\)[^()]*)*)\)"
# With a type, an entry may begin after any sentence; without one, at the start of a line.
_TYPED = re.compile(rf"(?:^|(?<=[.:;] )|(?<=\n))(?P<names>{_NAMES})\s{_TYPE}:\s", re.MULTILINE)
_UNTYPED = re.compile(rf"^(?P<names>{_NAMES}):\s", re.MULTILINE)
_EXAMPLE = re.compile(r"^EXAMPLES?:\n(?P<code>(?:[ ]+.*\n?|\n)+)", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """What a docstring says of a parameter, a result or an error.

    type (str): as written; "" if it is not given.
    text (str): Markdown, on one line.
    """

    type: str
    text: str


@dataclass(frozen=True)
class Docstring:
    """A docstring, taken apart.

    summary (str): its first sentence or sentences, up to the first blank line.
    notes (str): the paragraphs that belong to no entry, with their blank lines.
    parameters (Dict[str, Entry]): by name, in the order of the text.
    outcomes (List[Tuple[str, Entry]]): RETURNS, YIELDS and RAISES, in the order of the text.
    example (str): code with its results, or "".
    """

    summary: str = ""
    notes: str = ""
    parameters: Dict[str, Entry] = field(default_factory=dict)
    outcomes: List[Tuple[str, Entry]] = field(default_factory=list)
    example: str = ""


def read_docstring(thing: Any, parameters: Collection[str] = ()) -> Docstring:
    """Take a docstring apart.

    thing (Any): a class or a function.
    parameters (Collection[str]): names that are entries also where they have no type.
    RETURNS (Docstring): the parts; all empty if there is no docstring.
    """
    text = inspect.cleandoc(thing.__doc__ or "")
    example = _EXAMPLE.search(text + "\n")
    code = textwrap.dedent(example["code"]).strip() if example else ""
    summary = ""
    rest: List[str] = []
    entries: List[Tuple[List[str], Entry]] = []
    for paragraph in _EXAMPLE.sub("", text + "\n").split("\n\n"):
        before, found = _split_entries(paragraph, parameters)
        entries += found
        if before and not summary and not rest and not entries[: -len(found) or None]:
            summary = before
        elif before:
            rest.append(before)
    return Docstring(
        _join(summary),
        "\n\n".join(_join(part) for part in rest),
        {name: entry for names, entry in entries for name in names if name not in _KEYWORDS},
        [(names[0], entry) for names, entry in entries if names[0] in _KEYWORDS],
        code,
    )


def _split_entries(
    paragraph: str, parameters: Collection[str]
) -> Tuple[str, List[Tuple[List[str], Entry]]]:
    """RETURNS (Tuple[str, List[Tuple[List[str], Entry]]]): What comes before the first entry,
    and the entries."""
    starts = {match.start(): match for match in _TYPED.finditer(paragraph)}
    for match in _UNTYPED.finditer(paragraph):
        names = _split_names(match["names"])
        if all(name in parameters or name in _KEYWORDS for name in names):
            starts.setdefault(match.start(), match)
    places = sorted(starts)
    entries = []
    for place, end in zip(places, [*places[1:], len(paragraph)]):
        match = starts[place]
        text = _join(paragraph[match.end() : end])
        entries.append(
            (_split_names(match["names"]), Entry(match.groupdict().get("type") or "", text))
        )
    return paragraph[: places[0] if places else None].strip(), entries


def _split_names(names: str) -> List[str]:
    return re.split(r",\s+", names)


def _join(text: str) -> str:
    """One line of running text; lists and indented lines stay as they are."""
    text = text.strip()
    if re.search(r"^\s*(?:[-*]|\d\.) ", text, re.MULTILINE):
        return text
    return re.sub(r"\s+", " ", text)
