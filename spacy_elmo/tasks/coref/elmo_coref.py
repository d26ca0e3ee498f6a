"""The component "elmo_coref": which mentions of a text are the same."""

import warnings
from math import inf
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab

from ...errors import Errors, Warnings
from ...layers.doc_data import add_extension
from ..shared.default_tok2vec import DEFAULT_TOK2VEC
from ..shared.task_pipe import TaskPipe
from .clusters import PREFIX, Cluster, find_groups, get_chains, set_clusters
from .coref_loss import compute_loss
from .coref_model import (
    CorefGradient,
    CorefModel,
    CorefScores,
    get_max_span,
    get_mention_scores,
    require_weights,
)
from .coref_scorer import SCORES
from .span_choice import find_clusters

DEFAULT_MODEL = {
    "@architectures": "spacy-elmo.CorefSpanRanker.v2",
    "tok2vec": DEFAULT_TOK2VEC,
}

# Of the clusters, or of the mentions: fewer that cannot be learned are slips, or rare.
_MANY = 0.05


@Language.factory(
    "elmo_coref",
    assigns=["doc.spans", "doc._.coref_chains"],
    default_config={
        "model": DEFAULT_MODEL,
        "prefix": PREFIX,
        "singletons": False,
        "mention_weight": 1.0,
        "scorer": {"@scorers": "spacy-elmo.coref_scorer.v1"},
    },
    default_score_weights={**dict.fromkeys(SCORES), "coref_f": 1.0},
)
def make_elmo_coref(
    nlp: Language,
    name: str,
    model: CorefModel,
    prefix: str,
    singletons: bool,
    mention_weight: float,
    scorer: Optional[Callable],
) -> "ElmoCoref":
    """Make the component. See `ElmoCoref`."""
    return ElmoCoref(
        nlp.vocab,
        model,
        name,
        prefix=prefix,
        singletons=singletons,
        mention_weight=mention_weight,
        scorer=scorer,
    )


class ElmoCoref(TaskPipe):
    """Find the mentions of a doc that are the same: "Sam", "he", "the man". Each cluster of them
    is a span group, "coref_clusters_1", "coref_clusters_2" and so on, as in spacy-experimental;
    `doc._.coref_chains` lists them. Groups of these names that a doc has before are replaced.

    vocab (Vocab): the shared vocabulary.
    model (CorefModel): spacy-elmo.CorefSpanRanker.v2.
    name (str): name in the pipeline.
    prefix (str): of the span groups, of the gold ones as well. For another one, call
        `get_chains(doc, prefix)`.
    singletons (bool): mentions without another one are clusters, too, as in LitBank; not as in
        OntoNotes.
    mention_weight (float): in training, of the loss of single mentions beside that of their
        antecedents; at least 0.
    scorer (Optional[Callable]): scores examples; None for no scores.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: CorefModel,
        name: str = "elmo_coref",
        *,
        prefix: str = PREFIX,
        singletons: bool = False,
        mention_weight: float = 1.0,
        scorer: Optional[Callable] = None,
    ) -> None:
        """RAISES (ValueError): as `check_cfg`."""
        settings = {"prefix": prefix, "singletons": singletons, "mention_weight": mention_weight}
        self.check_cfg(settings)
        super().__init__(vocab, model, name, scorer=scorer, **settings)

    @staticmethod
    def register_extensions() -> None:
        """Register `doc._.coref_chains`."""
        add_extension(Doc, "coref_chains", getter=get_chains)

    def check_cfg(self, cfg: Dict[str, Any]) -> None:
        """cfg (Dict[str, Any]): settings. RAISES (ValueError): EL211 for an empty prefix, EL212 for
        a negative weight."""
        if not cfg["prefix"]:
            raise ValueError(Errors.EL211)
        if not 0 <= cfg["mention_weight"] < inf:
            raise ValueError(Errors.EL212.format(value=cfg["mention_weight"]))

    def _read_cfg(self, content: bytes, source: str) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): Our own settings: they are those of the pipeline's config,
        which may be overridden where it is loaded. RAISES (ValueError): as `TaskPipe`'s."""
        super()._read_cfg(content, source)
        return self.cfg

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Optional[Language] = None
    ) -> None:
        """Initialize the model, and check that there is something to learn.

        get_examples (Callable[[], Iterable[Example]]): the training data.
        nlp (Optional[Language]): the pipeline.
        RAISES (ValueError): EL213 if there is no gold cluster to learn from.
        """
        validate_get_examples(get_examples, "ElmoCoref.initialize")
        prefix = self.cfg["prefix"]
        chains = (chain for eg in get_examples() for chain in get_chains(eg.reference, prefix))
        lengths = [[len(span) for span in chain] for chain in chains]
        self._check_sizes([len(chain) for chain in lengths])
        self._check_lengths([length for chain in lengths for length in chain])
        self.model.initialize(X=[eg.reference for eg in self.take_sample(get_examples)])

    def _check_sizes(self, sizes: List[int]) -> None:
        n_single, singletons = sizes.count(1), self.cfg["singletons"]
        if not sizes or (n_single == len(sizes) and not singletons):
            raise ValueError(Errors.EL213.format(name=self.name, prefix=self.cfg["prefix"]))
        if n_single >= _MANY * len(sizes) and not singletons:
            text = Warnings.WL037.format(name=self.name, n_single=n_single, n=len(sizes))
            warnings.warn(text, stacklevel=3)
        if not n_single and singletons:
            warnings.warn(Warnings.WL038.format(name=self.name), stacklevel=3)

    def _check_lengths(self, lengths: List[int]) -> None:
        max_span = get_max_span(self.model)
        n_long = sum(length > max_span for length in lengths)
        if n_long >= _MANY * len(lengths):
            text = Warnings.WL067.format(
                name=self.name, n_long=n_long, n=len(lengths), max_span=max_span
            )
            warnings.warn(text, stacklevel=3)

    def predict(self, docs: Iterable[Doc]) -> List[List[Cluster]]:
        """docs (Iterable[Doc]): any docs. RETURNS (List[List[Cluster]]): the clusters of each.
        RAISES (ValueError): EL190 if the component was never trained."""
        docs = list(docs)
        if not any(len(doc) for doc in docs):
            return [[] for _ in docs]
        require_weights(self.model)
        return [self._find_clusters(scores) for scores in self.model.predict(docs)]

    def _find_clusters(self, scores: CorefScores) -> List[Cluster]:
        spans, antecedents = scores.candidates
        kept = (get_mention_scores(scores) > 0) & self.cfg["singletons"]
        return find_clusters(spans, scores.links, antecedents, kept)

    def set_annotations(self, docs: Iterable[Doc], clusters: List[List[Cluster]]) -> None:
        """docs (Iterable[Doc]): the docs. clusters (List[List[Cluster]]): what `predict` returned
        for them."""
        for doc, own in zip(docs, clusters):
            set_clusters(doc, own, self.cfg["prefix"])

    def get_loss(
        self, examples: Iterable[Example], scores: List[CorefScores]
    ) -> Tuple[float, List[CorefGradient]]:
        """examples (Iterable[Example]): a batch; those whose reference has no group of mentions are
        not learned from. scores (List[CorefScores]): what the model says of them.
        RETURNS (Tuple[float, List[CorefGradient]]): the loss in nats, divided by the number of
            mentions that were kept in docs that are learned from, and its gradient."""
        examples = list(examples)
        validate_examples(examples, "ElmoCoref.get_loss")
        golds = [self._find_gold(eg) for eg in examples]
        n_links = (len(own.links) for own, gold in zip(scores, golds) if gold is not None)
        n_mentions = sum(n_links) or 1
        total, gradients = 0.0, []
        for clusters, own in zip(golds, scores):
            loss, gradient = _ignore(own)
            if clusters is not None and len(own.links):
                loss, gradient = compute_loss(own, clusters, self.cfg["mention_weight"])
            total += loss / n_mentions
            gradients.append(CorefGradient(*(array / np.float32(n_mentions) for array in gradient)))
        return total, gradients

    def _find_gold(self, example: Example) -> Optional[List[Cluster]]:
        """RETURNS (Optional[List[Cluster]]): The gold clusters in tokens of the predicted doc."""
        if not find_groups(example.reference, self.cfg["prefix"]):
            return None
        clusters = []
        for chain in get_chains(example.reference, self.cfg["prefix"]):
            # By words, as spaCy aligns them: the spaces between may be others.
            spans = example.get_aligned_spans_y2x(chain, allow_overlap=True)
            if len(spans) < len(chain):
                warnings.warn(Warnings.WL039.format(name=self.name), stacklevel=2)
            if len(chain) > 1 or self.cfg["singletons"]:
                clusters.append([(span.start, span.end) for span in spans])
        return clusters


def _ignore(scores: CorefScores) -> Tuple[float, CorefGradient]:
    return 0.0, CorefGradient(np.zeros_like(scores.mentions), np.zeros_like(scores.links))
