"""Cross-entropy of predicates and of tags, each a mean over its tokens."""

from typing import List, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray
from thinc.api import Ops
from thinc.types import Floats1d, Floats2d

from .role_tags import UNKNOWN, GoldFrames


def get_predicate_loss(
    ops: Ops, scores: List[Floats1d], gold: Sequence[GoldFrames], known: Sequence[bool]
) -> Tuple[float, List[Floats1d]]:
    """ops (Ops): of the model. scores (List[Floats1d]): of each doc shape (n_tokens,), logits.
    gold (Sequence[GoldFrames]): its predicates. known (Sequence[bool]): whether they are all.
    RETURNS (Tuple[float, List[Floats1d]]): the loss, and its gradients."""
    xp = ops.xp
    n_known = [len(x) - len(g.unknown) for x, g, is_known in zip(scores, gold, known) if is_known]
    n_tokens = max(1, sum(n_known))
    loss, gradients = 0.0, []
    for each, (_, predicates, unknown), is_known in zip(scores, gold, known):
        truth = xp.zeros(len(each), dtype="float32")
        truth[xp.asarray(predicates, dtype="int64")] = 1
        weights = xp.full(len(each), float(is_known) / n_tokens, dtype="float32")
        weights[xp.asarray(unknown, dtype="int64")] = 0
        # log(1 + exp(x)) - x * truth, in a form that does not overflow.
        losses = xp.maximum(each, 0) - each * truth + xp.log1p(xp.exp(-xp.abs(each)))
        loss += float((losses * weights).sum())
        gradients.append((ops.sigmoid(each) - truth) * weights)
    return loss, gradients


def get_tag_loss(
    ops: Ops, scores: List[Floats2d], tags: List[NDArray]
) -> Tuple[float, List[Floats2d]]:
    """ops (Ops): of the model. scores (List[Floats2d]): of each clause shape (n_tokens, n_tags),
    logits. tags (List[NDArray]): of each clause shape (n_tokens,), or UNKNOWN.
    RETURNS (Tuple[float, List[Floats2d]]): the loss, and its gradients."""
    if not scores:
        return 0.0, []
    xp = ops.xp
    truth = xp.asarray(np.concatenate(tags))  # (n_clause_tokens,)
    is_known = truth != UNKNOWN
    weights = is_known / max(1, int(is_known.sum()))
    rows = xp.arange(len(truth))
    gradient = ops.softmax(xp.concatenate(scores), axis=-1)  # (n_clause_tokens, n_tags)
    loss = -float((xp.log(gradient[rows, truth] + 1e-30) * weights).sum())
    gradient[rows, truth] -= 1
    gradient = (gradient * weights[:, None]).astype("float32")
    return loss, ops.unflatten(gradient, ops.asarray1i([len(each) for each in tags]))
