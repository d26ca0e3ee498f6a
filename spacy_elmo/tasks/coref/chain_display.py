"""Chains in colours, by displaCy."""

import colorsys
from html import escape
from typing import Any, Dict, List

from spacy import displacy
from spacy.tokens import Doc, Span

from .clusters import PREFIX, get_chains

# Turns of the colour wheel from a chain to the next: never near an earlier one.
_GOLDEN = 0.618034
_LONGEST = 20


def make_display(doc: Doc, prefix: str = PREFIX) -> Dict[str, Any]:
    """Make what displaCy draws: `displacy.render(**make_display(doc))`, or `displacy.serve`.

    doc (Doc): with span groups of mentions.
    prefix (str): of the groups.
    RETURNS (Dict[str, Any]): keyword arguments: tokens and mentions, labelled by the number and the
        first mention of their chain, and a colour for each.
    """
    chains = get_chains(doc, prefix)
    labels = [_make_label(i, chain) for i, chain in enumerate(chains, start=1)]
    mentions = [(m.start, -m.end, label) for label, chain in zip(labels, chains) for m in chain]
    spans = [
        {"start_token": start, "end_token": -end, "label": label}
        for start, end, label in sorted(mentions)
    ]
    data = {"text": doc.text, "spans": spans, "tokens": [token.text for token in doc]}
    colors = {label: make_color(i) for i, label in enumerate(labels)}
    return {"docs": data, "style": "span", "manual": True, "options": {"colors": colors}}


def render_chains(doc: Doc, prefix: str = PREFIX, *, page: bool = False) -> str:
    """doc (Doc): with span groups of mentions. prefix (str): of the groups. page (bool): a whole
    HTML page. RETURNS (str): HTML."""
    return displacy.render(**make_display(doc, prefix), page=page, jupyter=False)


def make_color(i: int) -> str:
    """i (int): from 0. RETURNS (str): a light colour for black text, such as "#f2c5a0"."""
    red, green, blue = colorsys.hls_to_rgb(i * _GOLDEN % 1, 0.8, 0.7)
    return "#" + "".join(f"{round(255 * part):02x}" for part in (red, green, blue))


def _make_label(i: int, chain: List[Span]) -> str:
    text = " ".join(chain[0].text.split())
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    # displaCy escapes the text, but no label.
    return f"{i} {escape(short)}"
