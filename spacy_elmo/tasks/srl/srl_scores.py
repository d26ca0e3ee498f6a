"""Scores of frames, as the official script counts them.

The rules are those of srl-eval.pl, the evaluation script of the CoNLL-2004 and 2005 shared tasks
(Carreras and Màrquez 2004, 2005), by the names of its subroutines:

- `load_SE_tagging`: a span "C-X" continues the last argument X before it, and both are one
  discontinuous argument. Without one before it, it is an argument X itself. "R-X" is a label
  like others.
- `discriminate_args`: an argument is right if there is one of the same label and the same spans.
- `%excluded`: the predicate "V", with its continuations, is no argument.
- Frames belong together if their predicates begin at the same token. All arguments of a predicate
  that was not found are missed.
- Ours: predicates of `srl_predicates` that have no frame are predicates, whose arguments are not
  known: those that are found for them do not count.
- Ours: all arguments of a predicate that is none are excess. The script leaves these out ("Skipping
  prop"), since it expects predicates to be given; where they are, there are none.
"""

from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from spacy.scorer import PRFScore
from spacy.tokens import Doc
from spacy.training import Example

from ..shared.word_places import find_places
from .frames import PREDICATES, VERB, Frame, is_annotated, read_frames

# Spans of an argument, and labels: several spans if it is discontinuous.
Argument = Tuple[Tuple[int, int, str], ...]
Frames = Dict[int, Optional[Set[Argument]]]


def score_frames(examples: Iterable[Example], **kwargs: Any) -> Dict[str, Any]:
    """Score the frames of examples whose reference has some, or `srl_predicates`.

    examples (Iterable[Example]): predicted and reference.
    kwargs (Any): not used.
    RETURNS (Dict[str, Any]): precision, recall and F of arguments, `srl_p`, `srl_r`, `srl_f`,
        and `srl_per_type`; of predicates, `srl_predicate_p`, `srl_predicate_r` and
        `srl_predicate_f`: found if they begin at the right token. None if no example has gold.
    RAISES (ValueError): EL200 as `read_frames`.
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
                score = per_type.setdefault(label, PRFScore())
                score.score_set(_select(ours, label), _select(theirs, label))
    scores: Dict[str, Any] = {}
    for name, score in (("srl", total), ("srl_predicate", predicates)):
        values = (score.precision, score.recall, score.fscore)
        for key, value in zip("prf", values):
            scores[f"{name}_{key}"] = value if annotated else None
    per_type_scores = {label: per_type[label].to_dict() for label in sorted(per_type)}
    return {**scores, "srl_per_type": per_type_scores if annotated else None}


def _select(arguments: Set[Argument], label: str) -> Set[Argument]:
    return {argument for argument in arguments if argument[0][2] == label}


def _collect(doc: Doc) -> Frames:
    """Start of the predicate -> its arguments, None if these are not known; by `find_places`."""
    places = find_places(doc)
    found: Dict[int, Set[Argument]] = {}
    for frame in read_frames(doc):
        arguments = found.setdefault(places[frame.predicate.start], set())
        arguments.update(join_arguments(frame, places))
    named = [places[span.start] for span in doc.spans.get(PREDICATES, []) if len(span)]
    return {**dict.fromkeys(named), **found}


def join_arguments(frame: Frame, places: List[int]) -> List[Argument]:
    """Join the parts of discontinuous arguments.

    frame (Frame): of a doc.
    places (List[int]): where its tokens begin, and its end.
    RETURNS (List[Argument]): those that count.
    """
    arguments: List[Argument] = []
    # Label -> which of `arguments` is continued.
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
