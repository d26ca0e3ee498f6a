"""The component "elmo_entailment": it predicts whether one text follows from another one."""

from math import log
from typing import Any, Callable, Collection, Dict, Iterable, Iterator, List, Optional, Tuple

from spacy.language import Language
from spacy.scorer import PRFScore
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from spacy.vocab import Vocab
from thinc.api import Model
from thinc.types import Floats2d

from ...errors import Errors
from ...layers.doc_data import add_extension
from ..shared.labelled_pipe import DEFAULT_TOK2VEC, LabelledPipe
from ..shared.text_pairs import get_pair, make_pair
from .readers import PAIR_NAMES

# Never the logarithm of 0.
_LEAST = 1e-10


@Language.factory(
    "elmo_entailment",
    assigns=["doc.cats", "doc._.entailment"],
    requires=["doc.spans"],
    default_config={
        "model": {"@architectures": "spacy-elmo.EntailmentESIM.v2", "tok2vec": DEFAULT_TOK2VEC},
        "scorer": {"@scorers": "spacy-elmo.entailment_scorer.v1"},
    },
    default_score_weights={
        "entailment_acc": 1.0,
        "entailment_macro_f": None,
        "entailment_f_per_type": None,
    },
)
def make_elmo_entailment(
    nlp: Language, name: str, model: Model[List[Doc], Floats2d], scorer: Optional[Callable]
) -> "ElmoEntailment":
    """Make the component. See `ElmoEntailment`."""
    return ElmoEntailment(nlp.vocab, model, name, scorer=scorer)


class ElmoEntailment(LabelledPipe):
    """Predict whether a hypothesis follows from a premise. A pair of these texts is one Doc with
    the span groups "premise" and "hypothesis" (see `make_pair`). `doc.cats` gets the probability of
    each label, `doc._.entailment` the likeliest label; docs without a pair are not changed. The
    probabilities are kept with the span group "hypothesis", too, under the component's name.

    vocab (Vocab): the shared vocabulary.
    model (Model[List[Doc], Floats2d]): spacy-elmo.EntailmentESIM.v2.
    name (str): name in the pipeline.
    scorer (Optional[Callable]): scores examples; None for no scores.
    """

    min_labels = 2
    hint = "pairs with `cats`, as `python -m spacy elmo convert-data snli` makes them"

    def __init__(
        self,
        vocab: Vocab,
        model: Model[List[Doc], Floats2d],
        name: str = "elmo_entailment",
        *,
        scorer: Optional[Callable] = None,
    ) -> None:
        super().__init__(vocab, model, name, scorer=scorer)

    @staticmethod
    def register_extensions() -> None:
        """Register `doc._.entailment`."""
        add_extension(Doc, "entailment", default=None)

    def make_pair(self, nlp: Language, premise: str, hypothesis: str) -> Doc:
        """Make a pair for `nlp(doc)` and `nlp.pipe(docs)`, or to be given `cats` and trained on."""
        return make_pair(nlp, premise, hypothesis, PAIR_NAMES)

    def predict_pair(self, nlp: Language, premise: str, hypothesis: str) -> Dict[str, float]:
        """Run the whole pipeline over a pair, and return the probability of each label. RAISES
        (ValueError): EL227 if the pipeline does not run this component."""
        return next(self.predict_pairs(nlp, [(premise, hypothesis)]))

    def predict_pairs(
        self, nlp: Language, pairs: Iterable[Tuple[str, str]], **kwargs: Any
    ) -> Iterator[Dict[str, float]]:
        """As `predict_pair`, for many pairs of premise and hypothesis. **kwargs (Any): of
        `nlp.pipe`, such as `batch_size`."""
        docs = (self.make_pair(nlp, *pair) for pair in pairs)
        for doc in nlp.pipe(docs, **kwargs):
            yield self.require_result(nlp, doc.spans[PAIR_NAMES[1]].attrs.get(self.name))

    def find_labels(self, example: Example) -> Iterable[str]:
        """Categories of a pair."""
        is_pair = get_pair(example.reference, PAIR_NAMES) is not None
        return list(example.reference.cats) if is_pair else []

    def predict(self, docs: Iterable[Doc]) -> Floats2d:
        """Probabilities of shape (n_docs, n_labels); zeros for docs without a pair. RAISES
        (ValueError): EL190 if the component was never trained."""
        docs = list(docs)
        scores: Any = self.model.ops.alloc2f(len(docs), len(self.labels))
        rows = [i for i, doc in enumerate(docs) if get_pair(doc, PAIR_NAMES) is not None]
        if rows:
            self.require_labels()
            scores[rows] = self.model.predict([docs[i] for i in rows])
        return scores

    def set_annotations(self, docs: Iterable[Doc], scores: Floats2d) -> None:
        """Set `cats` and `doc._.entailment` from the result of `predict`."""
        for doc, row in zip(docs, scores):
            if get_pair(doc, PAIR_NAMES) is not None:
                cats = dict(zip(self.labels, (float(score) for score in row)))
                doc.cats.update(cats)
                # Another component, such as a `textcat`, may have the same labels in `cats`.
                doc.spans[PAIR_NAMES[1]].attrs[self.name] = cats
                doc._.entailment = self.labels[int(row.argmax())]

    def get_loss(self, examples: Iterable[Example], scores: Floats2d) -> Tuple[float, Floats2d]:
        """The mean cross entropy in nats, and its gradient before the softmax, a sum. Examples
        without a gold label are not learned from."""
        examples = list(examples)
        validate_examples(examples, "ElmoEntailment.get_loss")
        d_scores: Any = self.model.ops.alloc2f(*scores.shape)
        loss, n_gold = 0.0, 0
        for i, eg in enumerate(examples):
            label = get_gold(eg, self.labels)
            if label is None:
                continue
            if label not in self.labels:
                raise self.unknown_label(label)
            k = self.labels.index(label)
            d_scores[i] = scores[i]
            d_scores[i, k] -= 1.0
            loss -= log(max(float(scores[i, k]), _LEAST))
            n_gold += 1
        return loss / max(n_gold, 1), d_scores


def get_gold(example: Example, labels: Collection[str] = ()) -> Optional[str]:
    """The gold label of a pair; None without a pair or a label. labels (Collection[str]): of the
    component; () if they are unknown."""
    if get_pair(example.reference, PAIR_NAMES) is None:
        return None
    cats = example.reference.cats
    if not any(cats.values()):
        return None
    chosen = [label for label, value in cats.items() if value >= 0.5]
    # Another component, such as a `textcat`, may learn from the same doc.
    if labels and len(chosen) > 1:
        chosen = [label for label in chosen if label in labels]
    if len(chosen) != 1:
        raise ValueError(Errors.EL318.format(text=example.text[:50], cats=cats))
    if get_pair(example.predicted, PAIR_NAMES) is None:
        raise ValueError(Errors.EL199.format(text=example.text[:50], names=str([*PAIR_NAMES])))
    return chosen[0]


def score_entailment(examples: Iterable[Example], **cfg: Any) -> Dict[str, Any]:
    """Score the likeliest labels of pairs.

    examples (Iterable[Example]): those without a gold label do not count.
    **cfg (Any): "labels" of the component; without them, they are those of all gold cats.
    RETURNS (Dict[str, Any]): `entailment_acc`, `entailment_macro_f` over the labels of gold and
        prediction, `entailment_f_per_type`; None if nothing counts.
    """
    ElmoEntailment.register_extensions()
    known = cfg.get("labels") or ()
    found = [(eg.predicted, eg.reference.cats, get_gold(eg, known)) for eg in examples]
    golds = [each for each in found if each[-1] is not None]
    labels = known or {label for _, cats, _ in golds for label in cats}
    per_type: Dict[str, PRFScore] = {}
    n_right = 0
    for doc, _, gold in golds:
        # Docs from a `DocBin` may have their cats alone, some of them of other components.
        cats = {label: value for label, value in doc.cats.items() if label in labels}
        predicted = doc._.entailment or max(cats, key=lambda each: cats[each], default=None)
        n_right += gold == predicted
        for label in filter(None, {gold, predicted}):
            score = per_type.setdefault(label, PRFScore())
            score.tp += gold == predicted
            score.fp += label == predicted != gold
            score.fn += label == gold != predicted
    f_scores = [score.fscore for score in per_type.values()]
    return {
        "entailment_acc": n_right / len(golds) if golds else None,
        "entailment_macro_f": sum(f_scores) / len(f_scores) if golds else None,
        "entailment_f_per_type": {k: s.to_dict() for k, s in sorted(per_type.items())} or None,
    }


def make_entailment_scorer() -> Callable:
    """RETURNS (Callable): `score_entailment`, for a config."""
    return score_entailment
