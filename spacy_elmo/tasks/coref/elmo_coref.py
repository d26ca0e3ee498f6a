"""The component "elmo_coref": it finds mentions that refer to the same person or thing."""

import warnings
from math import inf
from typing import Callable, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab

from ...errors import Errors, Warnings
from ...layers.doc_data import add_extension
from ...utils import require_valid
from ..shared.annotations import Place
from ..shared.labelled_pipe import DEFAULT_TOK2VEC, TaskPipe
from .clusters import PREFIX, SCORES, Cluster, find_groups, get_chains, set_clusters
from .network import CorefGradient, CorefModel, CorefScores
from .spans import Floats

# Of the clusters, or of the mentions: fewer that cannot be learned are slips, or rare.
_MANY = 0.05


@Language.factory(
    "elmo_coref",
    assigns=["doc.spans", "doc._.coref_chains"],
    default_config={
        "model": {"@architectures": "spacy-elmo.CorefSpanRanker.v2", "tok2vec": DEFAULT_TOK2VEC},
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
    """Find mentions that refer to the same thing: "Sam", "he", "the man". Each cluster of them
    is a span group, "coref_clusters_1", "coref_clusters_2" and so on, as in spacy-experimental;
    `doc._.coref_chains` lists them. Existing groups of these names are replaced.

    vocab (Vocab): the shared vocabulary.
    model (CorefModel): spacy-elmo.CorefSpanRanker.v2.
    name (str): name in the pipeline.
    prefix (str): prefix of the names of predicted and gold span groups. To read groups with
        another prefix, call `get_chains(doc, prefix)`.
    singletons (bool): whether a mention without another one is a cluster, too: true for data as
        LitBank, false for data as OntoNotes.
    mention_weight (float): in training, the weight of the loss of single mentions; the loss of
        their antecedents has the weight 1; at least 0.
    scorer (Optional[Callable]): scores examples; None for no scores.
    RAISES (ValueError): EL012 for an empty prefix, or a negative weight.
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
        require_valid(bool(prefix), "prefix", '""', 'a name, such as "coref_clusters"')
        is_weight = 0 <= mention_weight < inf
        require_valid(is_weight, "mention_weight", mention_weight, "a number of at least 0")
        settings = {"prefix": prefix, "singletons": singletons, "mention_weight": mention_weight}
        super().__init__(vocab, model, name, scorer=scorer, **settings)

    @staticmethod
    def register_extensions() -> None:
        """Register `doc._.coref_chains`."""
        add_extension(Doc, "coref_chains", getter=get_chains)

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Optional[Language] = None
    ) -> None:
        """Initialize the model, and check the training data. RAISES (ValueError): EL194 without a
        gold cluster to learn from. Warns with WL037 and WL042."""
        validate_get_examples(get_examples, "ElmoCoref.initialize")
        self._check_data(get_examples())
        self.model.initialize(X=[eg.reference for eg in self.take_sample(get_examples)])

    def _check_data(self, examples: Iterable[Example]) -> None:
        chains = [c for eg in examples for c in get_chains(eg.reference, self.cfg["prefix"])]
        sizes = [len(chain) for chain in chains]
        lengths = [len(mention) for chain in chains for mention in chain]
        n_single, singletons = sizes.count(1), self.cfg["singletons"]
        if not sizes or (n_single == len(sizes) and not singletons):
            needed = (
                f"docs with two mentions in a span group '{self.cfg['prefix']}_1' and so on, as "
                "`python -m spacy elmo convert-data ontogum` makes them; or another `prefix` in "
                f"[components.{self.name}]; or for clusters of one mention, `singletons = true`"
            )
            problem = f"clusters: {len(sizes)}, of one mention: {n_single}"
            raise ValueError(Errors.EL194.format(name=self.name, problem=problem, needed=needed))
        if (n_single == 0) if singletons else (n_single >= _MANY * len(sizes)):
            found, other = str(singletons).lower(), str(not singletons).lower()
            text = Warnings.WL037.format(
                name=self.name, n_single=n_single, n=len(sizes), found=found, other=other
            )
            warnings.warn(text, stacklevel=3)
        max_span = self.model.layers[1].attrs["shape"].max_span
        n_long = sum(length > max_span for length in lengths)
        if n_long >= _MANY * len(lengths):
            setting, counts = f"max_span = {max_span}", {"n_long": n_long, "n": len(lengths)}
            text = Warnings.WL042.format(
                what="mentions that are", setting=setting, name=self.name, **counts
            )
            warnings.warn(text, stacklevel=3)

    def predict(self, docs: Iterable[Doc]) -> List[List[Cluster]]:
        """Find the clusters of docs. RAISES (ValueError): EL190 if it was never trained."""
        docs = list(docs)
        if not any(len(doc) for doc in docs):
            return [[] for _ in docs]
        return [self._find_clusters(scores) for scores in self.model.predict(docs)]

    def _find_clusters(self, scores: CorefScores) -> List[Cluster]:
        """Link each mention to its best antecedent, if that scores higher than none."""
        spans, antecedents = scores.candidates
        clusters: List[List[int]] = []
        own: Dict[int, List[int]] = {}
        for i, best in enumerate(scores.links.argmax(axis=1)):
            # Antecedents come first, so that their clusters exist.
            own[i] = own[int(antecedents[i, best - 1])] if best else []
            if not best:
                clusters.append(own[i])
            own[i].append(i)
        is_mention = scores.mentions[spans[:, 0], spans[:, 1] - spans[:, 0] - 1] > 0
        kept = is_mention & self.cfg["singletons"]
        return [
            [(int(spans[i, 0]), int(spans[i, 1])) for i in cluster]
            for cluster in clusters
            if len(cluster) > 1 or kept[cluster[0]]
        ]

    def set_annotations(self, docs: Iterable[Doc], clusters: List[List[Cluster]]) -> None:
        """Set the span groups from the result of `predict`."""
        for doc, own in zip(docs, clusters):
            set_clusters(doc, own, self.cfg["prefix"])

    def get_loss(
        self, examples: Iterable[Example], scores: List[CorefScores]
    ) -> Tuple[float, List[CorefGradient]]:
        """The loss in nats for each mention that was kept, and its gradient. Examples whose
        reference has no group of mentions are not learned from."""
        examples = list(examples)
        validate_examples(examples, "ElmoCoref.get_loss")
        golds = [self._find_gold(eg) for eg in examples]
        n_mentions = sum(len(own.links) for own, gold in zip(scores, golds) if gold is not None)
        total = 0.0
        gradients: List[CorefGradient] = []
        for clusters, own in zip(golds, scores):
            gradient = np.zeros_like(own.mentions), np.zeros_like(own.links)
            if clusters is not None and len(own.links):
                loss, found = compute_loss(own, clusters, self.cfg["mention_weight"])
                total += loss / n_mentions
                gradient = found[0] / np.float32(n_mentions), found[1] / np.float32(n_mentions)
            gradients.append(gradient)
        return total, gradients

    def _find_gold(self, example: Example) -> Optional[List[Cluster]]:
        """The gold clusters in tokens of the predicted doc."""
        if not find_groups(example.reference, self.cfg["prefix"]):
            return None
        clusters = []
        for chain in get_chains(example.reference, self.cfg["prefix"]):
            # By words, as spaCy aligns them: the spaces between may differ.
            spans = example.get_aligned_spans_y2x(chain, allow_overlap=True)
            if len(spans) < len(chain):
                reader = 'spacy-elmo.CorefCorpus.v1"` with `gold_tokens = true`'
                text = Warnings.WL039.format(name=self.name, what="mentions", reader=reader)
                warnings.warn(text, stacklevel=2)
            if len(chain) > 1 or self.cfg["singletons"]:
                clusters.append([(span.start, span.end) for span in spans])
        return clusters


def compute_loss(
    scores: CorefScores, clusters: Sequence[Cluster], mention_weight: float
) -> Tuple[float, CorefGradient]:
    """Negative marginal log likelihood of all gold antecedents of each mention that was kept (Lee
    et al. 2017, section 3), and the cross entropy of all spans as mentions, which also reaches
    those that were not kept. Sums over the doc, in nats."""
    mentions = scores.mentions
    end = scores.start + len(mentions)
    # The cluster of each gold mention in the part.
    numbers: Dict[Place, int] = {
        (start - scores.start, stop - scores.start): number
        for number, cluster in enumerate(clusters)
        for start, stop in cluster
        if scores.start <= start and stop <= end
    }
    is_gold = np.zeros(mentions.shape, dtype=bool)
    for start, stop in numbers:
        if stop - start <= mentions.shape[1]:
            is_gold[start, stop - start - 1] = True
    # A gold mention that crosses the end of a sentence, or is too long, is not a candidate.
    is_span = np.isfinite(mentions)
    logits, d_mentions = mentions[is_span], np.zeros_like(mentions)
    mention_loss = float((np.logaddexp(0, logits) - logits * is_gold[is_span]).sum())
    d_mentions[is_span] = np.exp(-np.logaddexp(0, -logits)) - is_gold[is_span]
    d_mentions *= np.float32(mention_weight)
    link_loss, d_links = _compute_links(scores, numbers)
    return link_loss + mention_weight * mention_loss, (d_mentions, d_links)


def _compute_links(scores: CorefScores, numbers: Dict[Place, int]) -> Tuple[float, Floats]:
    """Loss and gradient of links: "no antecedent" is right for mentions without a gold one."""
    spans, antecedents = scores.candidates
    # -1: not a gold mention. The last row is for missing antecedents, which are -1, too.
    own = [numbers.get((int(start), int(end)), -1) for start, end in spans]
    clusters = np.array([*own, -1], dtype="int64")
    others = clusters[antecedents]  # (n_mentions, k)
    is_right = (others == clusters[:-1].reshape(-1, 1)) & (others >= 0)
    is_right = np.concatenate([~is_right.any(axis=1, keepdims=True), is_right], axis=1)
    right = np.where(is_right, scores.links, np.float32("-inf"))
    log_all, log_right = _logsumexp(scores.links), _logsumexp(right)
    gradient = np.exp(scores.links - log_all) - np.exp(right - log_right)
    return float((log_all - log_right).sum()), gradient.astype("float32")


def _logsumexp(X: Floats) -> Floats:
    largest = X.max(axis=1, keepdims=True, initial=np.float32("-inf"))
    return largest + np.log(np.exp(X - largest).sum(axis=1, keepdims=True))
