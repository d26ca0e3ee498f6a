"""MUC, B³ and CEAFφ4, the scores of CoNLL-2011 and 2012 (Pradhan et al. 2014).

A mention is any hashable value; clusters need not have the same mentions on both sides.
"""

from collections import Counter
from typing import Callable, Dict, Hashable, List, NamedTuple, Sequence

import networkx as nx

Partition = Sequence[Sequence[Hashable]]


class Ratio(NamedTuple):
    """right, n (float): what counts as found, of how much. Those of documents are added."""

    right: float
    n: float


class Metric(NamedTuple):
    """recall, precision (Ratio): of one document, or of several together."""

    recall: Ratio
    precision: Ratio


def add_metrics(metrics: Sequence[Metric]) -> Metric:
    """metrics (Sequence[Metric]): of documents. RETURNS (Metric): Of all of them, as the reference
    scorer adds them up."""
    sums = (Ratio(*map(sum, zip(*ratios))) for ratios in zip(*metrics))
    return Metric(*sums) if metrics else Metric(Ratio(0, 0), Ratio(0, 0))


def get_prf(metric: Metric) -> Dict[str, float]:
    """metric (Metric): any. RETURNS (Dict[str, float]): "p", "r" and "f"; 0 of nothing is 0."""
    r, p = (ratio.right / ratio.n if ratio.n else 0.0 for ratio in metric)
    return {"p": p, "r": r, "f": 2 * p * r / (p + r) if p + r else 0.0}


def compute_mentions(gold: Partition, predicted: Partition) -> Metric:
    """Which mentions are found, whatever their clusters."""
    sides = [{m for cluster in clusters for m in cluster} for clusters in (gold, predicted)]
    n_right = len(sides[0] & sides[1])
    return Metric(Ratio(n_right, len(sides[0])), Ratio(n_right, len(sides[1])))


def compute_muc(gold: Partition, predicted: Partition) -> Metric:
    """Links: those that a cluster needs, less those that the other side lacks (Vilain et al. 1995).
    Mentions without a link do not count.

    gold, predicted (Partition): clusters.
    RETURNS (Metric): of the document.
    """
    return Metric(_muc_recall(gold, predicted), _muc_recall(predicted, gold))


def compute_b3(gold: Partition, predicted: Partition) -> Metric:
    """Mentions: of each, the share of its cluster that the other side has with it (Bagga and
    Baldwin 1998; a mention that the other side lacks has none, as in the reference scorer).

    gold, predicted (Partition): clusters.
    RETURNS (Metric): of the document.
    """
    return Metric(_b3_recall(gold, predicted), _b3_recall(predicted, gold))


def compute_ceafe(gold: Partition, predicted: Partition) -> Metric:
    """Clusters: the best one-to-one alignment of both sides by φ4, twice the common mentions over
    the sum of the sizes (Luo 2005).

    gold, predicted (Partition): clusters.
    RETURNS (Metric): of the document.
    """
    total = _align(gold, predicted)
    return Metric(Ratio(total, len(gold)), Ratio(total, len(predicted)))


METRICS: Dict[str, Callable[[Partition, Partition], Metric]] = {
    "muc": compute_muc,
    "b3": compute_b3,
    "ceafe": compute_ceafe,
}


def _muc_recall(these: Partition, others: Partition) -> Ratio:
    right = 0
    for cluster, counts in zip(these, _intersect(these, others)):
        n_parts = len(counts) + len(cluster) - sum(counts.values())
        right += len(cluster) - n_parts
    return Ratio(right, sum(len(cluster) - 1 for cluster in these))


def _b3_recall(these: Partition, others: Partition) -> Ratio:
    shares = (
        n * n / len(cluster)
        for cluster, counts in zip(these, _intersect(these, others))
        for n in counts.values()
    )
    return Ratio(sum(shares), sum(map(len, these)))


def _align(gold: Partition, predicted: Partition) -> float:
    # Clusters without a common mention have no edge: the graph is sparse.
    graph = nx.Graph()
    for i, counts in enumerate(_intersect(gold, predicted)):
        for j, n in counts.items():
            phi = 2 * n / (len(gold[i]) + len(predicted[j]))
            graph.add_edge(("gold", i), ("predicted", j), weight=phi)
    # The pieces of the graph are small, however long the document.
    pieces = (graph.subgraph(nodes) for nodes in nx.connected_components(graph))
    edges = (edge for piece in pieces for edge in nx.max_weight_matching(piece))
    return sum(graph.edges[edge]["weight"] for edge in edges)


def _intersect(these: Partition, others: Partition) -> List[Counter]:
    """RETURNS (List[Counter]): For each cluster, how many of its mentions are in which other."""
    place = {mention: j for j, cluster in enumerate(others) for mention in cluster}
    return [Counter(place[m] for m in cluster if m in place) for cluster in these]
