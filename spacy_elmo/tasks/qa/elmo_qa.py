"""The component "elmo_qa": it finds the words of a text that answer a question."""

import warnings
from typing import Any, Callable, Iterable, Iterator, List, Optional, Tuple, TypeVar

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.types import Floats2d

from ...errors import Errors, Warnings
from ...layers.doc_data import add_extension
from ...utils import require_least, require_valid
from ..shared.labelled_pipe import DEFAULT_TOK2VEC, TaskPipe
from ..shared.text_pairs import get_pair, make_pair
from .answers import Answer, Ranking, get_answer, get_answers, get_component, get_gold, set_answers
from .network import (
    PAIR_NAMES,
    QAModel,
    QAReading,
    Scores,
    SpanTable,
    choose_windows,
    get_gradient,
    make_table,
    rank_spans,
    read_doc,
)

_Result = TypeVar("_Result")
# Docs that are predicted at a time: `nlp.pipe` may give any number.
_N_DOCS = 64


@Language.factory(
    "elmo_qa",
    assigns=["doc.spans", "doc._.qa_answer", "doc._.qa_answers"],
    requires=["doc.spans"],
    default_config={
        "model": {"@architectures": "spacy-elmo.QABiDAF.v2", "tok2vec": DEFAULT_TOK2VEC},
        "window": 384,
        "stride": 256,
        "max_answer": 30,
        "train_windows": 3,
        "n_best": 5,
        "threshold": 0.5,
        "scorer": {"@scorers": "spacy-elmo.qa_scorer.v1"},
    },
    default_score_weights={
        "qa_em": 0.0,
        "qa_f1": 1.0,
        "qa_has_answer_em": None,
        "qa_has_answer_f1": None,
        "qa_no_answer_acc": None,
    },
)
def make_elmo_qa(
    nlp: Language,
    name: str,
    model: QAModel,
    window: int,
    stride: int,
    max_answer: int,
    train_windows: int,
    n_best: int,
    threshold: float,
    scorer: Optional[Callable],
) -> "ElmoQA":
    """Make the component. See `ElmoQA`."""
    return ElmoQA(
        nlp.vocab,
        model,
        name,
        window=window,
        stride=stride,
        max_answer=max_answer,
        train_windows=train_windows,
        n_best=n_best,
        threshold=threshold,
        scorer=scorer,
    )


class ElmoQA(TaskPipe):
    """Answer questions with words of a context. A question and its context are one Doc with the
    span groups "question" and "context" (see `make_pair`). `doc.spans["answers"]` gets the
    likeliest span, or none; `doc._.qa_answer` and `doc._.qa_answers` have the probabilities. Docs
    without a pair are not changed.

    vocab (Vocab): the shared vocabulary.
    model (QAModel): spacy-elmo.QABiDAF.v2.
    name (str): name in the pipeline.
    window (int): tokens of a context that are read at a time; a longer question is cut to it.
    stride (int): tokens from the start of a window to that of the next one; at most
        window - max_answer + 1, so that each answer is inside of a window.
    max_answer (int): most tokens of an answer, at least 1.
    train_windows (int): most windows of a doc that one update learns from, at least 1.
    n_best (int): answers that are kept in `doc._.qa_answers`; at least 1.
    threshold (float): if the probability of no answer (0 to 1) is above this, no span is set.
    scorer (Optional[Callable]): scores examples; None for no scores.
    RAISES (ValueError): EL012 for values out of range.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: QAModel,
        name: str = "elmo_qa",
        *,
        window: int = 384,
        stride: int = 256,
        max_answer: int = 30,
        train_windows: int = 3,
        n_best: int = 5,
        threshold: float = 0.5,
        scorer: Optional[Callable] = None,
    ) -> None:
        super().__init__(vocab, model, name, scorer=scorer)
        values = {"max_answer": max_answer, "train_windows": train_windows, "n_best": n_best}
        for key, value in values.items():
            require_least(key, value, 1)
        most = window - max_answer + 1
        sizes = f"window = {window} and max_answer = {max_answer}"
        expected = f"1 to {most} with {sizes}, so that each answer is inside of a window"
        require_valid(1 <= stride <= most, "stride", stride, expected)
        require_valid(0 <= threshold <= 1, "threshold", threshold, "a probability, 0 to 1")
        self.window, self.stride, self.max_answer = window, stride, max_answer
        self.train_windows, self.n_best, self.threshold = train_windows, n_best, threshold

    @staticmethod
    def register_extensions() -> None:
        """Register `doc._.qa_answer` and `doc._.qa_answers`."""
        add_extension(Doc, "qa_answer", getter=get_answer)
        add_extension(Doc, "qa_answers", getter=get_answers)

    def make_pair(self, nlp: Language, question: str, context: str) -> Doc:
        """Make a pair for `nlp(doc)` and `nlp.pipe(docs)`, or for `set_gold` to be trained on. The
        context keeps all its characters."""
        return make_pair(nlp, question, context, PAIR_NAMES, keep_space=True)

    def answer(self, nlp: Language, question: str, context: str) -> Answer:
        """Run the whole pipeline over a question and its context, and return the likeliest answer,
        which may be no answer. RAISES (ValueError): EL227 if the pipeline does not run this
        component, or another one has replaced its answer."""
        return next(self.answers(nlp, [(question, context)]))

    def answers(
        self, nlp: Language, pairs: Iterable[Tuple[str, str]], **kwargs: Any
    ) -> Iterator[Answer]:
        """As `answer`, for many pairs of question and context. **kwargs (Any): of `nlp.pipe`, such
        as `batch_size`."""
        docs = (self.make_pair(nlp, *pair) for pair in pairs)
        for doc in nlp.pipe(docs, **kwargs):
            yield self._require_own(nlp, doc, get_answer(doc))

    def top_answers(
        self, nlp: Language, question: str, context: str, n: Optional[int] = None
    ) -> List[Answer]:
        """The n likeliest spans as answers, best first, whatever the probability of no answer.
        n (Optional[int]): at most `n_best`; None for `n_best`."""
        n = self.n_best if n is None else n
        expected = f"1 to {self.n_best}, the `n_best` of [components.{self.name}]"
        require_valid(1 <= n <= self.n_best, "n", n, expected)
        doc = nlp(self.make_pair(nlp, question, context))
        return self._require_own(nlp, doc, get_answers(doc))[:n]

    def _require_own(self, nlp: Language, doc: Doc, result: Optional[_Result]) -> _Result:
        # Another component of this kind may have replaced the answer.
        return self.require_result(nlp, result if get_component(doc) == self.name else None)

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Optional[Language] = None
    ) -> None:
        """Initialize the model, and check the training data. RAISES (ValueError): EL194 if no
        example has a gold answer, or all are too long. Warns with WL040 and WL042."""
        validate_get_examples(get_examples, "ElmoQA.initialize")
        self._check_data(get_examples())
        sample = self.take_sample(get_examples)
        self.model.initialize(X=[QAReading(eg.reference, (0, 0), []) for eg in sample])

    def _check_data(self, examples: Iterable[Example]) -> None:
        found = [(get_pair(eg.reference, PAIR_NAMES) is not None, get_gold(eg)) for eg in examples]
        golds = [gold for _, gold in found if gold is not None]
        # Tokens of the shortest answer of each question that has any.
        lengths = [min(end - start for start, end in gold.places) for gold in golds if gold.places]
        n_long = sum(length > self.max_answer for length in lengths)
        setting = f"max_answer = {self.max_answer}"
        if n_long == len(lengths):
            n_pairs = sum(is_pair for is_pair, _ in found)
            counts = f"docs: {len(found)}, with a question and a context: {n_pairs}"
            problem = f"{counts}, with answers: 0"
            needed = (
                "docs with the span groups 'question', 'context' and 'answers', as `python -m "
                "spacy elmo convert-data squad` makes them"
            )
            if lengths:
                problem = f"all answers are longer than `{setting}` (questions: {n_long})"
                needed = f"shorter answers, or a larger `max_answer` in [components.{self.name}]"
            raise ValueError(Errors.EL194.format(name=self.name, problem=problem, needed=needed))
        if all(gold.texts for gold in golds):
            warnings.warn(Warnings.WL040.format(name=self.name), stacklevel=3)
        if n_long:
            what = "questions whose answers are all"
            sizes = {"n_long": n_long, "n": len(lengths)}
            text = Warnings.WL042.format(what=what, setting=setting, name=self.name, **sizes)
            warnings.warn(text, stacklevel=3)

    def predict(self, docs: Iterable[Doc]) -> List[Optional[Ranking]]:
        """Rank the answers of docs; None for docs without a pair. RAISES (ValueError): EL190 if the
        component was never trained."""
        docs = list(docs)
        rankings: List[Optional[Ranking]] = [None] * len(docs)
        rows = [i for i, doc in enumerate(docs) if get_pair(doc, PAIR_NAMES) is not None]
        for first in range(0, len(rows), _N_DOCS):
            batch = rows[first : first + _N_DOCS]
            readings = [read_doc(docs[i], self.window, self.stride) for i in batch]
            for i, scores in zip(batch, self.model.predict(readings)):
                rankings[i] = Ranking([], 1.0)
                if scores.windows:
                    table = self._make_table(docs[i], scores)
                    none = float(np.exp(table.none - table.total))
                    rankings[i] = Ranking(rank_spans(table, self.n_best), none)
        return rankings

    def _make_table(self, doc: Doc, scores: Scores) -> SpanTable:
        rows = [self.model.ops.to_numpy(array) for array in scores.rows]
        is_word = doc.to_array("IS_SPACE") == 0
        return make_table(scores.windows, rows, is_word, self.max_answer)

    def set_annotations(self, docs: Iterable[Doc], rankings: List[Optional[Ranking]]) -> None:
        """Set the span groups "answers" from the result of `predict`."""
        for doc, ranking in zip(docs, rankings):
            if ranking is not None:
                set_answers(doc, ranking, self.threshold, self.name)

    def learn(self, examples: List[Example]) -> float:
        """Learn from a batch, from at most `train_windows` of each context."""
        scores, backprop = self.model.begin_update([self._choose(eg) for eg in examples])
        loss, d_rows = self.get_loss(examples, scores)
        backprop(d_rows)
        return loss

    def _choose(self, example: Example) -> QAReading:
        reading, gold = read_doc(example.predicted, self.window, self.stride), get_gold(example)
        if gold is None or (gold.texts and not gold.places):
            return reading._replace(windows=[])
        return choose_windows(reading, gold.places, self.train_windows)

    def get_loss(
        self, examples: Iterable[Example], scores: List[Scores]
    ) -> Tuple[float, List[List[Floats2d]]]:
        """The mean negative log likelihood of the gold answers in nats, and its gradient, a sum.
        Examples without gold answers of at most `max_answer` tokens are not learned from."""
        examples = list(examples)
        validate_examples(examples, "ElmoQA.get_loss")
        ops, losses = self.model.ops, []
        gradients: List[List[Floats2d]] = []
        for example, own in zip(examples, scores):
            gold, learned = get_gold(example), None
            if gold is not None and own.windows and (gold.places or not gold.texts):
                learned = get_gradient(self._make_table(example.predicted, own), gold.places)
            if learned is None:
                gradients.append([ops.alloc2f(*rows.shape) for rows in own.rows])
            else:
                losses.append(learned[0])
                gradients.append([ops.asarray2f(rows) for rows in learned[1]])
        return sum(losses) / max(len(losses), 1), gradients
