"""What "elmo_coref" learns from: the likelihood of gold antecedents, and of gold mentions."""

from typing import Dict, List, Sequence, Tuple

import numpy as np

from .clusters import Cluster, Mention
from .coref_model import CorefGradient, CorefScores
from .mention_facts import Ints
from .span_choice import Floats


def compute_loss(
    scores: CorefScores, clusters: Sequence[Cluster], mention_weight: float
) -> Tuple[float, CorefGradient]:
    """Compute the negative marginal log likelihood of all gold antecedents of each mention that was
    kept (Lee et al. 2017, section 3; no antecedent is right for what has no gold one), and the
    cross entropy of all spans as mentions, which also reaches those that were not kept.

    scores (CorefScores): of a doc, or of a part.
    clusters (Sequence[Cluster]): gold ones, in tokens of the doc.
    mention_weight (float): of the second part.
    RETURNS (Tuple[float, CorefGradient]): sum over the doc, in nats, and its gradient.
    """
    numbers = _number(scores, clusters)
    link_loss, d_links = _compute_links(scores, numbers)
    mention_loss, d_mentions = _compute_mentions(scores.mentions, list(numbers))
    d_mentions *= np.float32(mention_weight)
    return link_loss + mention_weight * mention_loss, CorefGradient(d_mentions, d_links)


def _number(scores: CorefScores, clusters: Sequence[Cluster]) -> Dict[Mention, int]:
    """RETURNS (Dict[Mention, int]): The cluster of each gold mention in the part."""
    end = scores.start + len(scores.mentions)
    return {
        (start - scores.start, stop - scores.start): number
        for number, cluster in enumerate(clusters)
        for start, stop in cluster
        if scores.start <= start and stop <= end
    }


def _compute_mentions(mentions: Floats, gold: List[Mention]) -> Tuple[float, Floats]:
    is_gold = np.zeros(mentions.shape, dtype=bool)
    for start, end in gold:
        if end - start <= mentions.shape[1]:
            is_gold[start, end - start - 1] = True
    # A gold mention may cross the end of a sentence, or be too long: it is no candidate then.
    is_span = np.isfinite(mentions)
    logits, gradient = mentions[is_span], np.zeros_like(mentions)
    loss = np.logaddexp(0, logits) - logits * is_gold[is_span]
    gradient[is_span] = np.exp(-np.logaddexp(0, -logits)) - is_gold[is_span]
    return float(loss.sum()), gradient


def _compute_links(scores: CorefScores, numbers: Dict[Mention, int]) -> Tuple[float, Floats]:
    is_right = _find_right(scores.candidates.spans, scores.candidates.antecedents, numbers)
    right = np.where(is_right, scores.links, np.float32("-inf"))
    log_all, log_right = _logsumexp(scores.links), _logsumexp(right)
    gradient = np.exp(scores.links - log_all) - np.exp(right - log_right)
    return float((log_all - log_right).sum()), gradient.astype("float32")


def _find_right(spans: Ints, antecedents: Ints, numbers: Dict[Mention, int]) -> np.ndarray:
    """RETURNS (ndarray): bool, shape (n_mentions, 1 + k)."""
    # -1: no gold mention. One row more, for antecedents that are not there.
    own = [numbers.get((int(start), int(end)), -1) for start, end in spans]
    clusters = np.array([*own, -1], dtype="int64")
    others = clusters[antecedents]  # (n_mentions, k); -1 takes the last row
    is_right = (others == clusters[:-1].reshape(-1, 1)) & (others >= 0)
    return np.concatenate([~is_right.any(axis=1, keepdims=True), is_right], axis=1)


def _logsumexp(X: Floats) -> Floats:
    largest = X.max(axis=1, keepdims=True, initial=np.float32("-inf"))
    return largest + np.log(np.exp(X - largest).sum(axis=1, keepdims=True))
