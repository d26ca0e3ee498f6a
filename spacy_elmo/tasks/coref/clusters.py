"""Clusters of mentions <-> the span groups of a doc, named as in spacy-experimental:
"coref_clusters_1", "coref_clusters_2" and so on."""

import re
from typing import Iterable, List, Tuple

from spacy.tokens import Doc, Span

PREFIX = "coref_clusters"

# First token, and the one behind the last.
Mention = Tuple[int, int]
Cluster = List[Mention]


def find_groups(doc: Doc, prefix: str = PREFIX) -> List[str]:
    """doc (Doc): any doc. prefix (str): of the groups. RETURNS (List[str]): Names of its groups of
    mentions, by their numbers. None: nobody has said what refers to what in it."""
    matches = [re.fullmatch(re.escape(prefix) + r"_(\d+)", name) for name in doc.spans]
    return [m[0] for m in sorted(filter(None, matches), key=lambda m: int(m[1]))]


def get_chains(doc: Doc, prefix: str = PREFIX) -> List[List[Span]]:
    """doc (Doc): any doc. prefix (str): of the groups. RETURNS (List[List[Span]]): The mentions of
    each chain, each once and in the order of the text; nothing that is empty."""
    groups = (doc.spans[name] for name in find_groups(doc, prefix))
    chains = ({(span.start, span.end): span for span in group if len(span)} for group in groups)
    return [[chain[key] for key in sorted(chain)] for chain in chains if chain]


def set_clusters(doc: Doc, clusters: Iterable[Cluster], prefix: str = PREFIX) -> None:
    """Replace the groups of mentions, also those of an earlier run.

    doc (Doc): changed in place.
    clusters (Iterable[Cluster]): in any order; numbered by their first mentions.
    prefix (str): of the groups.
    """
    for name in find_groups(doc, prefix):
        del doc.spans[name]
    for i, cluster in enumerate(sorted(map(sorted, clusters)), start=1):
        doc.spans[f"{prefix}_{i}"] = [Span(doc, start, end) for start, end in cluster]


def set_gold_clusters(doc: Doc, clusters: Iterable[Cluster], prefix: str = PREFIX) -> None:
    """As `set_clusters`; a doc without any cluster gets an empty group, which says so."""
    set_clusters(doc, clusters, prefix)
    if not find_groups(doc, prefix):
        doc.spans[f"{prefix}_1"] = []
