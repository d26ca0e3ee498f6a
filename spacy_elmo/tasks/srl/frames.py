"""Frames, a predicate with its arguments, as span groups of a Doc; and their scores.

Frame number N, from 1, is the group `srl_N`: its predicate with the label "V", and a span for
each argument. The group `srl_predicates` has the predicates of all frames; a doc with this group is
annotated, even if it has no predicate. So `DocBin` and `to_bytes` keep frames.
"""

import re
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from spacy.scorer import PRFScore
from spacy.tokens import Doc, Span
from spacy.training import Example

from ...errors import Errors
from ..shared.annotations import find_places

PREDICATES = "srl_predicates"
VERB = "V"
_GROUP = re.compile("srl_([1-9][0-9]*)")

# Place and label of an argument; several if it is discontinuous.
Argument = Tuple[Tuple[int, int, str], ...]


class Frame(NamedTuple):
    """A predicate, labelled "V", and labels and spans of its arguments in the order of the text."""

    predicate: Span
    arguments: List[Tuple[str, Span]]


def read_frames(doc: Doc) -> List[Frame]:
    """Frames of a doc by their numbers. RAISES (ValueError): EL200 for a group without a predicate,
    or with several."""
    frames = []
    for name in _find_groups(doc):
        spans = [span for span in doc.spans[name] if len(span)]
        predicates = [span for span in spans if span.label_ == VERB]
        if len(predicates) != 1:
            n = len(predicates)
            raise ValueError(Errors.EL200.format(group=name, text=doc.text[:50], n=n))
        arguments = sorted(span for span in spans if span.label_ != VERB)
        frames.append(Frame(predicates[0], [(span.label_, span) for span in arguments]))
    return frames


def is_annotated(doc: Doc) -> bool:
    """Whether the predicates of a doc are known: it may be annotated for other components."""
    return PREDICATES in doc.spans or bool(_find_groups(doc))


def write_frames(doc: Doc, frames: Sequence[Frame]) -> None:
    """Set the frames of a doc; existing ones are removed."""
    for name in _find_groups(doc):
        del doc.spans[name]
    doc.spans[PREDICATES] = [frame.predicate for frame in frames]
    for number, frame in enumerate(frames, start=1):
        doc.spans[f"srl_{number}"] = [frame.predicate, *(span for _, span in frame.arguments)]


def _find_groups(doc: Doc) -> List[str]:
    numbers = [int(match[1]) for name in doc.spans if (match := _GROUP.fullmatch(name))]
    return [f"srl_{number}" for number in sorted(numbers)]


def describe_frame(frame: Frame) -> Dict[str, Any]:
    """Make the input of displaCy: `displacy.render(describe_frame(doc._.elmo_srl[0]),
    style="span", manual=True)`."""
    doc = frame.predicate.doc
    spans = [frame.predicate, *(span for _, span in frame.arguments)]
    start, end = min(span.start for span in spans), max(span.end for span in spans)
    own = frame.predicate.sent if doc.has_annotation("SENT_START") else doc[:]
    sentence = doc[min(own.start, start) : max(own.end, end)]
    offset = sentence.start
    places = [
        {"start_token": s.start - offset, "end_token": s.end - offset, "label": s.label_}
        for s in spans
    ]
    return {"text": sentence.text, "tokens": [t.text for t in sentence], "spans": places}


def score_frames(examples: Iterable[Example], **kwargs: Any) -> Dict[str, Any]:
    """Score frames as srl-eval.pl, the script of the CoNLL-2004 and 2005 shared tasks (Carreras and
    Màrquez 2004, 2005):

    - A span "C-X" continues the last argument X before it; both are one discontinuous argument.
      Without one before it, it is an argument X itself. "R-X" is a label like others.
    - An argument is right if the other side has one of the same label and the same spans.
    - The predicate "V", with its continuations, is not an argument.
    - Frames belong together if their predicates begin at the same token. All arguments of a
      predicate that was not found are missed.

    Two rules beyond the script, which expects predicates to be given: arguments of a predicate that
    is not in the gold are excess; and those of a gold predicate of `srl_predicates` without a frame
    do not count, since its arguments are unknown.

    examples (Iterable[Example]): those whose reference has neither frames nor `srl_predicates` do
        not count.
    RETURNS (Dict[str, Any]): precision, recall and F of arguments, `srl_p`, `srl_r`, `srl_f`,
        and `srl_per_type`; of predicates, `srl_predicate_p`, `srl_predicate_r` and
        `srl_predicate_f`: found if they begin at the right token. None if no example counts.
    """
    total, predicates = PRFScore(), PRFScore()
    per_type: Dict[str, PRFScore] = {}
    annotated = [eg for eg in examples if is_annotated(eg.reference)]
    for example in annotated:
        gold, found = _collect(example.reference), _collect(example.predicted)
        predicates.score_set(set(found), set(gold))
        for predicate in {*gold, *found}:
            ours, theirs = found.get(predicate) or set(), gold.get(predicate, set())
            if theirs is None:
                continue
            total.score_set(ours, theirs)
            for label in {argument[0][2] for argument in ours | theirs}:
                own, other = ({a for a in side if a[0][2] == label} for side in (ours, theirs))
                per_type.setdefault(label, PRFScore()).score_set(own, other)
    scores: Dict[str, Any] = {}
    for name, score in (("srl", total), ("srl_predicate", predicates)):
        for key, value in zip("prf", (score.precision, score.recall, score.fscore)):
            scores[f"{name}_{key}"] = value if annotated else None
    per_type_scores = {label: per_type[label].to_dict() for label in sorted(per_type)}
    return {**scores, "srl_per_type": per_type_scores if annotated else None}


def _collect(doc: Doc) -> Dict[int, Optional[Set[Argument]]]:
    """Start of each predicate -> its arguments, None if they are unknown; by `find_places`."""
    places = find_places(doc)
    found: Dict[int, Set[Argument]] = {}
    for frame in read_frames(doc):
        arguments = found.setdefault(places[frame.predicate.start], set())
        arguments.update(join_arguments(frame, places))
    named = [places[span.start] for span in doc.spans.get(PREDICATES, []) if len(span)]
    return {**dict.fromkeys(named), **found}


def join_arguments(frame: Frame, places: List[int]) -> List[Argument]:
    """The arguments of a frame by `find_places`, parts of discontinuous ones joined."""
    arguments: List[Argument] = []
    # Label -> the number of the argument that is continued.
    last: Dict[str, int] = {VERB: -1}
    for label, span in frame.arguments:
        start, end = places[span.start], places[span.end]
        head = label.removeprefix("C-")
        if label.startswith("C-") and head in last:
            if head != VERB:
                arguments[last[head]] += ((start, end, label),)
        else:
            last[head] = len(arguments)
            arguments.append(((start, end, head),))
    return arguments


def make_srl_scorer() -> Callable[..., Dict[str, Any]]:
    """RETURNS (Callable[..., Dict[str, Any]]): `score_frames`."""
    return score_frames
