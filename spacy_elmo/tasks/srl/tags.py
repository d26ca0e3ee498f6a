"""Tags of a clause's tokens: gold tags, their loss, and the best tags of scores. Tags are BIO as
numbers: 0 is O, 1 and 2 are B and I of the predicate, 3 and 4 those of the first role, ..."""

import warnings
from itertools import groupby
from typing import Dict, List, NamedTuple, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Span
from spacy.training import Example
from spacy.util import filter_spans
from thinc.api import Ops
from thinc.types import Floats1d, Floats2d

from ...errors import Warnings
from ..shared.annotations import LabelledSpan, Place
from .frames import PREDICATES, VERB, Frame, read_frames
from .network import Clause

# Tag of a token from which nothing is learned.
UNKNOWN = -1
_NEVER = -np.inf


class GoldFrame(NamedTuple):
    """A frame in the doc to be predicted. unknown: places that arguments are inside of."""

    predicate: Place
    arguments: List[Span]
    unknown: List[Place]


class GoldFrames(NamedTuple):
    """Frames in order, first tokens of all predicates, with and without a frame, and tokens that
    predicates are inside of."""

    frames: List[GoldFrame]
    predicates: List[int]
    unknown: List[int]


def find_gold(example: Example, name: str = "elmo_srl") -> GoldFrames:
    """Find the gold frames of an example, in the tokens of the doc to be predicted. Spans that
    begin or end inside of these are not learned; of arguments that overlap, the longest is."""
    frames = read_frames(example.reference)
    group = example.reference.spans.get(PREDICATES, [])
    named = [*(frame.predicate for frame in frames), *filter(len, group)]
    places = {(span.start, span.end): _align(example, span) for span in named}
    known = {place.start for place in places.values() if isinstance(place, Span)}
    unknown = {i for place in places.values() if isinstance(place, tuple) for i in range(*place)}
    gold = GoldFrames([], sorted(known), sorted(unknown - known))
    for frame in frames:
        predicate = places[frame.predicate.start, frame.predicate.end]
        if isinstance(predicate, Span):
            gold.frames.append(_align_frame(example, frame, predicate))
    if unknown or any(frame.unknown for frame in gold.frames):
        reader = 'spacy-elmo.SpanCorpus.v1"` with `gold_preproc = true`'
        text = Warnings.WL039.format(name=name, what="predicates or arguments", reader=reader)
        warnings.warn(text, stacklevel=2)
    return gold


def _align_frame(example: Example, frame: Frame, predicate: Span) -> GoldFrame:
    places = [_align(example, span) for _, span in frame.arguments]
    spans = [place for place in places if isinstance(place, Span)]
    apart = [s for s in spans if s.end <= predicate.start or s.start >= predicate.end]
    kept = filter_spans(apart)
    if len(kept) < len(spans):
        problem = "overlap each other or their predicate; the longest is learned, and scores count"
        warnings.warn(Warnings.WL034.format(problem=f"{problem} all"), stacklevel=2)
    unknown = [place for place in places if isinstance(place, tuple)]
    return GoldFrame((predicate.start, predicate.end), kept, unknown)


def _align(example: Example, span: Span) -> Union[Span, Place]:
    """The span in the doc to be predicted, or the tokens there that it is inside of."""
    aligned = example.get_aligned_spans_y2x([span])
    if aligned:
        return aligned[0]
    tokens = example.alignment.y2x[span.start : span.end]
    return (int(tokens[0]), int(tokens[-1]) + 1) if len(tokens) else (0, 0)


def make_tags(clause: Clause, gold: GoldFrame, labels: Dict[str, int]) -> NDArray:
    """Make the gold tags of a clause: UNKNOWN for tokens of arguments whose role is not in
    `labels`, or which reach outside of the clause."""
    tags = np.zeros(clause.n_tokens, dtype="int64")

    def set_tags(start: int, end: int, first: int, others: int) -> None:
        start, end = max(start - clause.start, 0), max(end - clause.start, 0)
        tags[start:end] = others
        tags[start : min(start + 1, end)] = first

    for start, end in gold.unknown:
        set_tags(start, end, UNKNOWN, UNKNOWN)
    set_tags(*clause.predicate, 1, 2)
    for span in gold.arguments:
        problem = ""
        if span.label_ not in labels:
            problem = f"have the role '{span.label_}', which the component was not initialized with"
        elif span.start < clause.start or clause.end < span.end:
            reason = "are outside of their predicate's sentence, or of the `max_tokens` of"
            problem = f"{reason} spacy-elmo.SRLTagger.v1"
        if problem:
            warnings.warn(Warnings.WL034.format(problem=problem), stacklevel=2)
        first = UNKNOWN if problem else 3 + 2 * labels[span.label_]
        set_tags(span.start, span.end, first, UNKNOWN if problem else first + 1)
    return tags


def read_roles(tags: Sequence[int], clause: Clause, labels: Sequence[str]) -> List[LabelledSpan]:
    """Read the BIO tags of a clause as spans of the doc; the predicate is labelled "V"."""
    spans: List[LabelledSpan] = []
    for i, tag in enumerate(tags, start=clause.start):
        if tag % 2:
            label = VERB if tag == 1 else labels[(tag - 3) // 2]
            spans.append(LabelledSpan(i, i + 1, label))
        elif tag:
            start, _, label = spans.pop()
            spans.append(LabelledSpan(start, i + 1, label))
    return spans


def get_predicate_loss(
    ops: Ops, scores: List[Floats1d], gold: Sequence[GoldFrames], known: Sequence[bool]
) -> Tuple[float, List[Floats1d]]:
    """Cross-entropy of predicates, a mean over the tokens of docs whose predicates are known, and
    its gradients."""
    xp = ops.xp
    n_known = [len(x) - len(g.unknown) for x, g, is_known in zip(scores, gold, known) if is_known]
    n_tokens = max(1, sum(n_known))
    loss, gradients = 0.0, []
    for each, (_, predicates, unknown), is_known in zip(scores, gold, known):
        truth = xp.zeros(len(each), dtype="float32")
        truth[xp.asarray(predicates, dtype="int64")] = 1
        weights = xp.full(len(each), float(is_known) / n_tokens, dtype="float32")
        weights[xp.asarray(unknown, dtype="int64")] = 0
        # log(1 + exp(x)) - x * truth, in a form that does not overflow.
        losses = xp.maximum(each, 0) - each * truth + xp.log1p(xp.exp(-xp.abs(each)))
        loss += float((losses * weights).sum())
        gradients.append((ops.sigmoid(each) - truth) * weights)
    return loss, gradients


def get_tag_loss(
    ops: Ops, scores: List[Floats2d], tags: List[NDArray]
) -> Tuple[float, List[Floats2d]]:
    """Cross-entropy of tags, a mean over known tokens, and its gradients."""
    if not scores:
        return 0.0, []
    xp = ops.xp
    truth = xp.asarray(np.concatenate(tags))  # (n_clause_tokens,)
    is_known = truth != UNKNOWN
    weights = is_known / max(1, int(is_known.sum()))
    rows = xp.arange(len(truth))
    gradient = ops.softmax(xp.concatenate(scores), axis=-1)  # (n_clause_tokens, n_tags)
    loss = -float((xp.log(gradient[rows, truth] + 1e-30) * weights).sum())
    gradient[rows, truth] -= 1
    gradient = (gradient * weights[:, None]).astype("float32")
    return loss, ops.unflatten(gradient, ops.asarray1i([len(each) for each in tags]))


def decode_roles(
    scores: Sequence[Floats2d], clauses: Sequence[Clause], fixed: bool
) -> List[List[int]]:
    """Find the best BIO tags of clauses by Viterbi's algorithm. The model has no scores of
    transitions (He et al. 2017), so that a step is linear in the number of tags. fixed (bool):
    whether all tokens of the predicates are known, not only the first."""
    decoded: List[List[int]] = [[] for _ in clauses]
    # Clauses of one length need no padding.
    by_length = sorted(range(len(clauses)), key=lambda i: clauses[i].n_tokens)
    for _, same in groupby(by_length, key=lambda i: clauses[i].n_tokens):
        group = list(same)
        stacked = np.stack([_constrain(scores[i], clauses[i], fixed) for i in group])
        for i, tags in zip(group, _decode(stacked)):
            decoded[i] = tags.tolist()
    return decoded


def _constrain(scores: Floats2d, clause: Clause, fixed: bool) -> NDArray:
    """Scores of tags, shape (n_tokens, n_tags), -inf where they contradict the predicate."""
    X = np.array(scores, dtype="float64")
    start, end = (place - clause.start for place in clause.predicate)
    X[np.arange(len(X)) != start, 1] = _NEVER
    X[start, np.arange(X.shape[1]) != 1] = _NEVER
    if fixed:
        X[start + 1 : end, np.arange(X.shape[1]) != 2] = _NEVER
        X[end:, 2] = _NEVER
    return X


def _decode(X: NDArray) -> NDArray:
    """Scores of shape (n, n_tokens, n_tags) -> the best tags, shape (n, n_tokens)."""
    n, n_tokens, n_tags = X.shape
    every = np.arange(n)
    insides = np.arange(2, n_tags, 2)
    before = np.zeros((n_tokens, n, n_tags), dtype="int64")
    best = X[:, 0].copy()
    best[:, insides] = _NEVER
    for t in range(1, n_tokens):
        before[t] = best.argmax(axis=1)[:, None]
        from_begin = best[:, insides - 1] > best[:, insides]  # (n, n_labels)
        before[t][:, insides] = np.where(from_begin, insides - 1, insides)
        best = best[every[:, None], before[t]] + X[:, t]
    tags = np.empty((n, n_tokens), dtype="int64")
    tags[:, -1] = best.argmax(axis=1)
    for t in range(n_tokens - 1, 0, -1):
        tags[:, t - 1] = before[t][every, tags[:, t]]
    return tags
