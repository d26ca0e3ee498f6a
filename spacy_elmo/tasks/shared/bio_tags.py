"""Tags of tokens -> labelled spans, in any of the usual schemes."""

from typing import List, NamedTuple, Optional, Sequence, Tuple

from spacy.tokens import Doc, Span

_STARTS, _ENDS = "BSU", "ESLU"
_PREFIXES = {*"BIOESLU"}


class LabelledSpan(NamedTuple):
    """start, end (int): tokens, the end not included. label (str)."""

    start: int
    end: int
    label: str


def read_tags(tags: Sequence[str]) -> List[LabelledSpan]:
    """Read tags in IOB1, IOB2, IOBES or BILUO: "B-PER", "I-PER", "O" and the like. A span begins
    wherever the label changes, so that the first three need not be told apart.

    tags (Sequence[str]): one for each token.
    RETURNS (List[LabelledSpan]): the spans, in order.
    RAISES (ValueError): with the tag, if it is none of these. Readers give it as EL197.
    """
    spans: List[LabelledSpan] = []
    opened: Optional[Tuple[int, str]] = None
    for i, (prefix, label) in enumerate([*map(_split, tags), ("O", "")]):
        is_new = prefix == "O" or prefix in _STARTS or (opened and opened[1] != label)
        if opened and is_new:
            spans.append(LabelledSpan(opened[0], i, opened[1]))
            opened = None
        if prefix != "O" and opened is None:
            opened = i, label
        if opened and prefix in _ENDS:
            spans.append(LabelledSpan(opened[0], i + 1, opened[1]))
            opened = None
    return spans


def _split(tag: str) -> Tuple[str, str]:
    prefix, _, label = tag.partition("-")
    if prefix not in _PREFIXES or (prefix == "O") == bool(label):
        raise ValueError(f"'{tag}' is no tag such as O, B-PER or I-PER")
    return prefix, label


def make_spans(doc: Doc, spans: Sequence[LabelledSpan], offset: int = 0) -> List[Span]:
    """doc (Doc): a doc. spans (Sequence[LabelledSpan]): in it. offset (int): token of the doc that
    they count from. RETURNS (List[Span]): spaCy's."""
    return [Span(doc, offset + start, offset + end, label=label) for start, end, label in spans]
