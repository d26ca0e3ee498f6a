"""Clusters of mentions in the span groups of a doc, named as in spacy-experimental
("coref_clusters_1", "coref_clusters_2"); their drawing by displaCy, and their scores."""

import colorsys
import re
from collections import Counter
from html import escape
from typing import Any, Callable, Dict, Hashable, Iterable, List, Sequence, Tuple

import networkx as nx
from spacy import displacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from ..shared.annotations import Place, find_places

PREFIX = "coref_clusters"
Cluster = List[Place]

# For metrics, mentions are any hashable values.
Partition = Sequence[Sequence[Hashable]]
# Sums of a metric: found and all for recall, the same for precision.
Sums = Tuple[float, float, float, float]

# Turns of the colour wheel from a chain to the next: never near an earlier one.
_GOLDEN = 0.618034


def find_groups(doc: Doc, prefix: str = PREFIX) -> List[str]:
    """Names of a doc's groups of mentions, by their numbers; none if it is not annotated."""
    matches = [re.fullmatch(re.escape(prefix) + r"_(\d+)", name) for name in doc.spans]
    return [m[0] for m in sorted(filter(None, matches), key=lambda m: int(m[1]))]


def get_chains(doc: Doc, prefix: str = PREFIX) -> List[List[Span]]:
    """The mentions of each chain, each once and in the order of the text, without empty ones.
    prefix (str): of the span groups."""
    groups = (doc.spans[name] for name in find_groups(doc, prefix))
    chains = ({(span.start, span.end): span for span in group if len(span)} for group in groups)
    return [[chain[key] for key in sorted(chain)] for chain in chains if chain]


def set_clusters(doc: Doc, clusters: Iterable[Cluster], prefix: str = PREFIX) -> None:
    """Replace the groups of mentions; clusters are numbered by their first mentions."""
    for name in find_groups(doc, prefix):
        del doc.spans[name]
    for i, cluster in enumerate(sorted(map(sorted, clusters)), start=1):
        doc.spans[f"{prefix}_{i}"] = [Span(doc, start, end) for start, end in cluster]


def set_gold_clusters(doc: Doc, clusters: Iterable[Cluster], prefix: str = PREFIX) -> None:
    """As `set_clusters`; a doc without clusters gets an empty group: it is annotated."""
    set_clusters(doc, clusters, prefix)
    if not find_groups(doc, prefix):
        doc.spans[f"{prefix}_1"] = []


def make_display(doc: Doc, prefix: str = PREFIX) -> Dict[str, Any]:
    """Arguments of `displacy.render` or `displacy.serve`: tokens and mentions, labelled by the
    number and the first mention of their chain, and a light colour for each. prefix (str): of
    the span groups."""
    colors: Dict[str, str] = {}
    mentions = []
    for i, chain in enumerate(get_chains(doc, prefix)):
        text = " ".join(chain[0].text.split())
        # displaCy does not escape labels.
        label = f"{i + 1} {escape(text if len(text) <= 20 else text[:19] + '…')}"
        rgb = colorsys.hls_to_rgb(i * _GOLDEN % 1, 0.8, 0.7)
        colors[label] = "#" + "".join(f"{round(255 * part):02x}" for part in rgb)
        mentions += [(m.start, -m.end, label) for m in chain]
    spans = [
        {"start_token": start, "end_token": -end, "label": label}
        for start, end, label in sorted(mentions)
    ]
    data = {"text": doc.text, "spans": spans, "tokens": [token.text for token in doc]}
    return {"docs": data, "style": "span", "manual": True, "options": {"colors": colors}}


def render_chains(doc: Doc, prefix: str = PREFIX, *, page: bool = False) -> str:
    """Draw chains as HTML. prefix (str): of the span groups. page (bool): a whole page."""
    return displacy.render(**make_display(doc, prefix), page=page, jupyter=False)


def compute_mentions(gold: Partition, predicted: Partition) -> Sums:
    """Mentions that are found, whatever their clusters."""
    these, others = ({m for cluster in side for m in cluster} for side in (gold, predicted))
    n_right = len(these & others)
    return n_right, len(these), n_right, len(others)


def _muc_recall(these: Partition, others: Partition) -> Tuple[float, float]:
    """Links that a cluster needs, less those that the other side lacks (Vilain et al. 1995).
    Mentions without a link do not count."""
    right = 0
    for cluster, counts in zip(these, _intersect(these, others)):
        n_parts = len(counts) + len(cluster) - sum(counts.values())
        right += len(cluster) - n_parts
    return right, sum(len(cluster) - 1 for cluster in these)


def _b3_recall(these: Partition, others: Partition) -> Tuple[float, float]:
    """Of each mention, the share of its cluster that it shares a cluster with on the other side
    (Bagga and Baldwin 1998; 0 if the other side lacks it, as in the reference scorer)."""
    shares = (
        n * n / len(cluster)
        for cluster, counts in zip(these, _intersect(these, others))
        for n in counts.values()
    )
    return sum(shares), sum(map(len, these))


def compute_ceafe(gold: Partition, predicted: Partition) -> Sums:
    """The best one-to-one alignment of the clusters of both sides by φ4, twice the common mentions
    over the sum of the sizes (Luo 2005)."""
    # Clusters without a common mention have no edge: the components of the graph are small.
    graph = nx.Graph()
    for i, counts in enumerate(_intersect(gold, predicted)):
        for j, n in counts.items():
            phi = 2 * n / (len(gold[i]) + len(predicted[j]))
            graph.add_edge(("gold", i), ("predicted", j), weight=phi)
    parts = (graph.subgraph(nodes) for nodes in nx.connected_components(graph))
    edges = (edge for part in parts for edge in nx.max_weight_matching(part))
    total = sum(graph.edges[edge]["weight"] for edge in edges)
    return total, len(gold), total, len(predicted)


def _intersect(these: Partition, others: Partition) -> List[Counter]:
    """For each cluster, how many of its mentions are in which other."""
    place = {mention: j for j, cluster in enumerate(others) for mention in cluster}
    return [Counter(place[m] for m in cluster if m in place) for cluster in these]


METRICS: Dict[str, Callable[[Partition, Partition], Sums]] = {
    "muc": lambda gold, predicted: (*_muc_recall(gold, predicted), *_muc_recall(predicted, gold)),
    "b3": lambda gold, predicted: (*_b3_recall(gold, predicted), *_b3_recall(predicted, gold)),
    "ceafe": compute_ceafe,
}
SCORES = ("coref_f", *(f"coref_{name}_{x}" for name in ("mentions", *METRICS) for x in "prf"))


def get_prf(sums: Sequence[Sums]) -> Dict[str, float]:
    """Precision, recall and F of docs together, added up as by the reference scorer."""
    found, n_gold, right, n_predicted = map(sum, zip(*sums))
    r, p = found / n_gold if n_gold else 0.0, right / n_predicted if n_predicted else 0.0
    return {"p": p, "r": r, "f": 2 * p * r / (p + r) if p + r else 0.0}


def score_coref(examples: Iterable[Example], prefix: str = PREFIX, **cfg: Any) -> Dict[str, Any]:
    """Score clusters by MUC, B³, CEAFφ4 and the mean of their F, as CoNLL-2012 does (Pradhan et al.
    2014). Mentions are compared by their characters, so the tokens of gold and prediction may
    differ.

    examples (Iterable[Example]): those whose reference has no group of mentions do not count; an
        empty group marks a doc without clusters.
    prefix (str): of the span groups.
    **cfg (Any): settings that spaCy gives to scorers; not used.
    RETURNS (Dict[str, Any]): `coref_f`, that mean; `coref_muc_p`, `_r`, `_f`, the same of `b3` and
        `ceafe`, and of `mentions`; None if nothing counts.
    """
    pairs = [
        (get_partition(eg.reference, prefix), get_partition(eg.predicted, prefix))
        for eg in examples
        if find_groups(eg.reference, prefix)
    ]
    if not pairs:
        return dict.fromkeys(SCORES)
    scores = {}
    for name, compute in (("mentions", compute_mentions), *METRICS.items()):
        prf = get_prf([compute(gold, predicted) for gold, predicted in pairs])
        scores.update({f"coref_{name}_{key}": value for key, value in prf.items()})
    mean = sum(scores[f"coref_{name}_f"] for name in METRICS) / len(METRICS)
    return {"coref_f": mean, **scores}


def get_partition(doc: Doc, prefix: str = PREFIX) -> List[List[Place]]:
    """Clusters of mentions by `find_places`; each mention once, in its first cluster."""
    places = find_places(doc)
    seen = set()
    clusters = []
    for chain in get_chains(doc, prefix):
        mentions = [(places[span.start], places[span.end]) for span in chain]
        clusters.append([mention for mention in mentions if mention not in seen])
        seen.update(mentions)
    return [cluster for cluster in clusters if cluster]


def make_coref_scorer() -> Callable:
    """RETURNS (Callable): `score_coref`, for a config. The component gives it its prefix."""
    return score_coref
