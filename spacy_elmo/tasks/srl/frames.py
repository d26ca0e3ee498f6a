"""Frames: a predicate with its arguments, as span groups of a Doc.

The frame number N, from 1, is the group `srl_N`: its predicate with the label "V", and a span for
each argument. The group `srl_predicates` holds the predicates of all frames; a doc that has
it was annotated, though there may be no predicate in it. So `DocBin` and `to_bytes` keep frames.
"""

import re
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from spacy.tokens import Doc, Span

from ...errors import Errors

PREDICATES = "srl_predicates"
VERB = "V"
_GROUP = re.compile("srl_([1-9][0-9]*)")
# Tokens that are drawn before and behind a frame.
_AROUND = 20


class Frame(NamedTuple):
    """predicate (Span): labelled "V". arguments (List[Tuple[str, Span]]): label and span, in the
    order of the text."""

    predicate: Span
    arguments: List[Tuple[str, Span]]


def read_frames(doc: Doc) -> List[Frame]:
    """Read the frames of a doc.

    doc (Doc): any doc.
    RETURNS (List[Frame]): by their numbers; none if it has no such groups.
    RAISES (ValueError): EL200 for a group without a predicate, or with several.
    """
    return [_read_frame(doc, name) for name in _find_groups(doc)]


def is_annotated(doc: Doc) -> bool:
    """doc (Doc): any doc. RETURNS (bool): whether its predicates are known. A doc without may be
    there for other components."""
    return PREDICATES in doc.spans or bool(_find_groups(doc))


def write_frames(doc: Doc, frames: Sequence[Frame]) -> None:
    """Set the frames of a doc; those that it had are removed.

    doc (Doc): the doc.
    frames (Sequence[Frame]): in order.
    """
    for name in _find_groups(doc):
        del doc.spans[name]
    doc.spans[PREDICATES] = [frame.predicate for frame in frames]
    for number, frame in enumerate(frames, start=1):
        spans = [frame.predicate, *(span for _, span in frame.arguments)]
        doc.spans[f"srl_{number}"] = spans


def describe_frame(frame: Frame) -> Dict[str, Any]:
    """Make what displaCy draws: `displacy.render(describe_frame(frame), style="span",
    manual=True)`. A doc's own group can be drawn, too: `displacy.render(doc, style="span",
    options={"spans_key": "srl_1"})`; here it is the predicate's sentence, and what the frame has
    beyond it, or, in a doc without sentences, the frame with a few tokens around it.

    frame (Frame): of a doc, such as `doc._.elmo_srl[0]`.
    RETURNS (Dict[str, Any]): text, tokens and spans.
    """
    doc = frame.predicate.doc
    spans = [frame.predicate, *(span for _, span in frame.arguments)]
    start, end = min(span.start for span in spans), max(span.end for span in spans)
    if doc.has_annotation("SENT_START"):
        own = frame.predicate.sent
        sentence = doc[min(own.start, start) : max(own.end, end)]
    else:
        sentence = doc[max(start - _AROUND, 0) : end + _AROUND]
    places = [
        {
            "start_token": span.start - sentence.start,
            "end_token": span.end - sentence.start,
            "label": span.label_,
        }
        for span in spans
    ]
    return {"text": sentence.text, "tokens": [t.text for t in sentence], "spans": places}


def _find_groups(doc: Doc) -> List[str]:
    numbers = [int(match[1]) for name in doc.spans if (match := _GROUP.fullmatch(name))]
    return [f"srl_{number}" for number in sorted(numbers)]


def _read_frame(doc: Doc, name: str) -> Frame:
    spans = [span for span in doc.spans[name] if len(span)]
    predicates = [span for span in spans if span.label_ == VERB]
    if len(predicates) != 1:
        n_found = len(predicates)
        raise ValueError(Errors.EL200.format(group=name, text=doc.text[:50], n=n_found))
    arguments = sorted(span for span in spans if span.label_ != VERB)
    return Frame(predicates[0], [(span.label_, span) for span in arguments])
