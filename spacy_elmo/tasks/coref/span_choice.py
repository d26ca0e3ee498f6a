"""Numbers -> mentions and clusters: which spans are kept, and what the links of mentions join."""

from typing import Dict, List, Tuple

import numpy as np
from numpy.typing import NDArray

from .clusters import Cluster
from .mention_facts import Ints, MentionFacts

Floats = NDArray[np.float32]


def mask_scores(scores: Floats, facts: MentionFacts) -> Floats:
    """scores (Floats): of spans, shape (n_tokens, max_span). facts (MentionFacts): of the tokens.
    RETURNS (Floats): the same, -inf where no mention can be."""
    n_tokens, max_span = scores.shape
    extra = np.arange(max_span)
    is_span = extra < facts.n_widths.reshape(-1, 1)
    lasts = np.minimum(np.arange(n_tokens).reshape(-1, 1) + extra, n_tokens - 1)
    is_mention = is_span & ~facts.is_space.reshape(-1, 1) & ~facts.is_space[lasts]
    # Of nothing but whitespace, any will do: one span is always kept.
    return np.where(is_mention if is_mention.any() else is_span, scores, np.float32("-inf"))


def choose_spans(scores: Floats, share: float) -> Tuple[Ints, Ints]:
    """Keep the best spans, none of which begins inside of another one and ends outside (Lee et al.
    2017, section 5).

    scores (Floats): shape (n_tokens, max_span), -inf where no mention can be; at least one token.
    share (float): spans that are kept, of the number of tokens; at least one span is.
    RETURNS (Tuple[Ints, Ints]): first token, and the one behind the last, shape (n_spans,), in the
        order of the text.
    """
    n_tokens, max_span = scores.shape
    n_kept = max(int(share * n_tokens), 1)
    order = np.argsort(-scores, axis=None, kind="stable")[: np.isfinite(scores).sum()]
    # The longest kept span that begins with a token, and the longest one that ends with it.
    last = np.full(n_tokens, -1)
    first = np.full(n_tokens, n_tokens)
    kept: List[Tuple[int, int]] = []
    for start, extra in zip(*np.divmod(order, max_span)):
        end = start + extra
        crosses_right = (last[start + 1 : end + 1] > end).any()
        if crosses_right or (first[start:end] < start).any():
            continue
        kept.append((int(start), int(end) + 1))
        last[start], first[end] = max(last[start], end), min(first[end], start)
        if len(kept) == n_kept:
            break
    starts, ends = np.array(sorted(kept), dtype="int64").T
    return starts, ends


def join_links(links: Floats, antecedents: Ints, kept: NDArray[np.bool_]) -> List[List[int]]:
    """Link each mention to its best antecedent, if that is better than none.

    links (Floats): shape (n_mentions, 1 + k): scores of no antecedent and of k.
    antecedents (Ints): shape (n_mentions, k): which they are.
    kept (NDArray[bool]): shape (n_mentions,): mentions that are a cluster on their own, if nothing
        is linked to them.
    RETURNS (List[List[int]]): clusters of mentions.
    """
    clusters: List[List[int]] = []
    place: Dict[int, List[int]] = {}
    for i, best in enumerate(links.argmax(axis=1)):
        # An antecedent comes earlier, so its cluster is there.
        place[i] = place[int(antecedents[i, best - 1])] if best else []
        if not best:
            clusters.append(place[i])
        place[i].append(i)
    return [cluster for cluster in clusters if len(cluster) > 1 or kept[cluster[0]]]


def find_clusters(
    spans: Ints, links: Floats, antecedents: Ints, kept: NDArray[np.bool_]
) -> List[Cluster]:
    """As `join_links`. spans (Ints): shape (n_mentions, 2): their tokens. RETURNS (List[Cluster]):
    clusters of these."""
    joined = join_links(links, antecedents, kept)
    return [[(int(spans[i, 0]), int(spans[i, 1])) for i in cluster] for cluster in joined]
