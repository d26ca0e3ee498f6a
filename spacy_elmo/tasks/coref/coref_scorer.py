"""The scores of "elmo_coref"."""

from typing import Any, Callable, Dict, Iterable, List, Tuple

from spacy.tokens import Doc
from spacy.training import Example

from ..shared.word_places import find_places
from .clusters import PREFIX, find_groups, get_chains
from .coref_metrics import METRICS, add_metrics, compute_mentions, get_prf

SCORES = ("coref_f", *(f"coref_{name}_{x}" for name in ("mentions", *METRICS) for x in "prf"))


def score_coref(examples: Iterable[Example], prefix: str = PREFIX, **cfg: Any) -> Dict[str, Any]:
    """Score clusters by MUC, B³, CEAFφ4 and the mean of their F, as CoNLL-2012 does. Mentions are
    compared by their characters, so the tokens of gold and prediction may differ.

    examples (Iterable[Example]): those whose reference has no group of mentions do not count; an
        empty group says that there is no cluster.
    prefix (str): of the span groups.
    **cfg (Any): what spaCy gives to scorers; not used.
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
        prf = get_prf(add_metrics([compute(gold, predicted) for gold, predicted in pairs]))
        scores.update({f"coref_{name}_{key}": value for key, value in prf.items()})
    mean = sum(scores[f"coref_{name}_f"] for name in METRICS) / len(METRICS)
    return {"coref_f": mean, **scores}


def get_partition(doc: Doc, prefix: str = PREFIX) -> List[List[Tuple[int, int]]]:
    """doc (Doc): any doc. prefix (str): of the groups. RETURNS (List[List[Tuple[int, int]]]):
    Clusters of mentions, by `find_places`; each mention once, in the first cluster that has it."""
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
