"""displaCy's HTML as a tree of what a page may build of it: no script, no link, no other file.

The page makes elements and text of the tree by itself, and so allows no markup from elsewhere and
no styles in markup (its Content-Security-Policy).
"""

import re
from html.parser import HTMLParser
from typing import Dict, List, Optional, Tuple, TypedDict, Union

# Whatever else displaCy writes becomes a plain span; an address of a knowledge base is dropped.
_TAGS = frozenset(("div", "mark", "span", "br"))
_PROPERTIES = frozenset((
    "background", "border-bottom-left-radius", "border-radius", "border-top-left-radius", "color",
    "direction", "display", "font-size", "font-weight", "height", "left", "line-height", "margin",
    "margin-left", "margin-right", "padding", "position", "top", "vertical-align", "width",
    "z-index",
))  # fmt: skip
# Numbers, lengths, words and colours; of functions, sums alone.
_VALUE = re.compile(r"(?!.*\bfixed\b)(?:#[0-9a-fA-F]{3,8}|calc\([\w\s%+.-]*\)|[\w\s%.-])*")


class Element(TypedDict):
    """tag (str): of HTML. style (Dict[str, str]): CSS properties. children (List): elements, and
    text as it is read."""

    tag: str
    style: Dict[str, str]
    children: "List[Union[Element, str]]"


def parse_markup(html: str) -> Element:
    """html (str): from displaCy. RETURNS (Element): a "div" with what is safe of it."""
    parser = _TreeParser()
    parser.feed(html)
    parser.close()
    return parser.root


def _make_element(tag: str, style: str = "") -> Element:
    return {"tag": tag if tag in _TAGS else "span", "style": _parse_style(style), "children": []}


def _parse_style(style: str) -> Dict[str, str]:
    pairs = (declaration.partition(":") for declaration in style.split(";"))
    named = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return {k: v for k, v in named.items() if k in _PROPERTIES and _VALUE.fullmatch(v)}


class _TreeParser(HTMLParser):
    """Builds the tree. root (Element): of all."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = _make_element("div")
        self._open: List[Tuple[str, Element]] = [("", self.root)]

    def handle_starttag(self, tag: str, attrs: List[Tuple[str, Optional[str]]]) -> None:
        element = _make_element(tag, dict(attrs).get("style") or "")
        self._open[-1][1]["children"].append(element)
        if tag != "br":
            self._open.append((tag, element))

    def handle_endtag(self, tag: str) -> None:
        names = [name for name, _ in self._open]
        if tag in names:
            del self._open[len(names) - 1 - names[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        # displaCy's own line breaks are its templates'; those of a text are <br>.
        text = re.sub(r"\s+", " ", data)
        if text:
            self._open[-1][1]["children"].append(text)
