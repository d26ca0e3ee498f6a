"""The component "elmo_srl": it finds predicates and their arguments with semantic roles."""

from functools import partial
from typing import Callable, Iterable, List, Literal, Optional, Tuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.types import Floats1d, Floats2d

from ...errors import Errors
from ...layers.doc_data import add_extension
from ...utils import require_known, require_valid, split_by_size
from ..shared.annotations import Place
from ..shared.labelled_pipe import DEFAULT_TOK2VEC, LabelledPipe
from .frames import PREDICATES, VERB, Frame, is_annotated, read_frames, score_frames, write_frames
from .network import Choose, Clause, SRLModel, SRLScores
from .tags import (
    GoldFrames,
    decode_roles,
    find_gold,
    get_predicate_loss,
    get_tag_loss,
    make_tags,
    read_roles,
)

# Of each doc, the clauses of its predicates and their tags.
Prediction = List[List[Tuple[Clause, List[int]]]]
Source = Literal["predicted", "given"]
# Tokens of docs that are predicted at a time: bounds the tags in memory.
_MOST_TOKENS = 8192


@Language.factory(
    "elmo_srl",
    assigns=["doc.spans", "doc._.elmo_srl"],
    default_config={
        "model": {"@architectures": "spacy-elmo.SRLTagger.v1", "tok2vec": DEFAULT_TOK2VEC},
        "predicates": "predicted",
        "threshold": 0.5,
        "scorer": {"@scorers": "spacy-elmo.srl_scorer.v1"},
    },
    default_score_weights={
        "srl_f": 1.0,
        "srl_p": 0.0,
        "srl_r": 0.0,
        "srl_predicate_f": 0.0,
        "srl_predicate_p": None,
        "srl_predicate_r": None,
        "srl_per_type": None,
    },
)
def make_elmo_srl(
    nlp: Language,
    name: str,
    model: SRLModel,
    predicates: Source,
    threshold: float,
    scorer: Optional[Callable],
) -> "ElmoSRL":
    """Make the component. See `ElmoSRL`."""
    return ElmoSRL(
        nlp.vocab, model, name, predicates=predicates, threshold=threshold, scorer=scorer
    )


class ElmoSRL(LabelledPipe):
    """Find predicates, and the spans of their arguments with their roles.

    Each frame (a predicate with its arguments) is a span group, `doc.spans["srl_1"]` and so on; the
    predicate has the label "V". `doc._.elmo_srl` lists them as (predicate, [(label, span), ...]).
    """

    hint = "frames with arguments: a span group srl_N for each, its predicate labelled 'V'"

    def __init__(
        self,
        vocab: Vocab,
        model: SRLModel,
        name: str = "elmo_srl",
        *,
        predicates: Source = "predicted",
        threshold: float = 0.5,
        scorer: Optional[Callable] = score_frames,
    ) -> None:
        """vocab (Vocab): the shared vocabulary.
        model (SRLModel): spacy-elmo.SRLTagger.v1.
        name (str): name in the pipeline.
        predicates (Source): "predicted", or "given" in `doc.spans["srl_predicates"]`, set by an
            earlier component or by the caller.
        threshold (float): probability in [0, 1] from which a token is a predicate.
        scorer (Optional[Callable]): scores examples; None for no scores.
        RAISES (ValueError): EL012 for other `predicates`, or a `threshold` out of range.
        """
        super().__init__(vocab, model, name, scorer=scorer)
        require_known("predicates", predicates, ("predicted", "given"))
        require_valid(0 <= threshold <= 1, "threshold", threshold, "a probability, 0 to 1")
        self.predicates = predicates
        self.threshold = threshold

    @staticmethod
    def register_extensions() -> None:
        """Register `doc._.elmo_srl`."""
        add_extension(Doc, "elmo_srl", getter=read_frames)

    def add_label(self, label: str) -> int:
        """As `LabelledPipe.add_label`. RAISES (ValueError): EL193 for "V", too."""
        if label == VERB:
            problem = "it marks the predicate"
            raise ValueError(Errors.EL193.format(label=label, name=self.name, problem=problem))
        return super().add_label(label)

    def predict(self, docs: Iterable[Doc]) -> Prediction:
        """Find the clauses of predicates and their tags. RAISES (ValueError): EL190 if the
        component was never trained, EL202 for a doc without the predicates that should be given."""
        docs = list(docs)
        if any(len(doc) for doc in docs):
            self.require_labels()
        parts = split_by_size(docs, len, _MOST_TOKENS)
        return [clauses for part in parts for clauses in self._predict(part)]

    def _predict(self, docs: List[Doc]) -> Prediction:
        prediction: Prediction = [[] for _ in docs]
        if not any(len(doc) for doc in docs):
            return prediction
        is_given = self.predicates == "given"
        given = [_read_given(doc) for doc in docs] if is_given else []
        choose: Choose = (lambda _: given) if is_given else partial(self._choose, docs)
        scores = self.model.predict((docs, choose))
        tags = [self.model.ops.to_numpy(each) for each in scores.tags]
        for clause, chosen in zip(scores.clauses, decode_roles(tags, scores.clauses, is_given)):
            prediction[clause.doc].append((clause, chosen))
        return prediction

    def _choose(self, docs: List[Doc], scores: List[Floats1d]) -> List[List[Place]]:
        with np.errstate(divide="ignore"):  # -inf for a threshold of 0, inf for 1
            least = np.log(self.threshold) - np.log1p(-self.threshold)
        chosen = [np.flatnonzero(self.model.ops.to_numpy(each) >= least) for each in scores]
        return [
            [(i, i + 1) for i in each.tolist() if not doc[i].is_space]
            for doc, each in zip(docs, chosen)
        ]

    def set_annotations(self, docs: Iterable[Doc], scores: Prediction) -> None:
        """Replace the span groups `srl_N` and `srl_predicates` by the result of `predict`."""
        for doc, clauses in zip(docs, scores):
            write_frames(doc, [self._make_frame(doc, *each) for each in clauses])

    def _make_frame(self, doc: Doc, clause: Clause, tags: List[int]) -> Frame:
        spans = [Span(doc, *span) for span in read_roles(tags, clause, self.labels)]
        (predicate,) = (span for span in spans if span.label_ == VERB)
        arguments = [_strip(span) for span in spans if span.label_ != VERB]
        return Frame(predicate, [(span.label_, span) for span in arguments if len(span)])

    def learn(self, examples: List[Example]) -> float:
        """Learn predicates and roles together, the predicates given. Examples without frames and
        without `srl_predicates` are not learned from."""
        self.require_labels()
        gold = [find_gold(eg, self.name) for eg in examples]
        places = [[frame.predicate for frame in each.frames] for each in gold]
        docs = [eg.predicted for eg in examples]
        scores, backprop = self.model.begin_update((docs, lambda _: places))
        loss, gradients = self.get_loss(examples, scores, gold)
        backprop(gradients)
        return loss

    def get_loss(
        self,
        examples: Iterable[Example],
        scores: SRLScores,
        gold: Optional[List[GoldFrames]] = None,
    ) -> Tuple[float, Tuple[List[Floats1d], List[Floats2d]]]:
        """The cross-entropy of predicates and of tags, each a mean over its tokens, and its
        gradients. scores (SRLScores): of the model, the gold predicates given."""
        examples = list(examples)
        gold = [find_gold(eg, self.name) for eg in examples] if gold is None else gold
        known = [is_annotated(eg.reference) for eg in examples]
        ops = self.model.ops
        loss, d_predicates = get_predicate_loss(ops, scores.predicates, gold, known)
        frames = [frame for each in gold for frame in each.frames]
        labels = {label: i for i, label in enumerate(self.labels)}
        tags = [make_tags(c, frame, labels) for c, frame in zip(scores.clauses, frames)]
        tag_loss, d_tags = get_tag_loss(ops, scores.tags, tags)
        return loss + tag_loss, (d_predicates, d_tags)

    def find_labels(self, example: Example) -> Iterable[str]:
        """Roles of an example."""
        frames = read_frames(example.reference)
        return [label for frame in frames for label, _ in frame.arguments]

    def count_outputs(self, n_labels: int) -> int:
        """The tags of a token: two for each role and the predicate, and O."""
        return 2 * n_labels + 3


def _strip(span: Span) -> Span:
    """Without whitespace at its ends; empty if it has no other tokens."""
    words = [token.i for token in span if not token.is_space] or [span.start, span.start - 1]
    return Span(span.doc, words[0], words[-1] + 1, label=span.label)


def _read_given(doc: Doc) -> List[Place]:
    if not len(doc):
        return []
    if PREDICATES not in doc.spans:
        raise ValueError(Errors.EL202.format(text=doc.text[:50], group=PREDICATES))
    # Each once, without whitespace, as those that are predicted.
    spans = [_strip(span) for span in doc.spans[PREDICATES]]
    return [*dict.fromkeys((span.start, span.end) for span in spans if len(span))]
