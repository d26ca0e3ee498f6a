"""The architecture of "elmo_coref": docs -> scores of mentions and of their antecedents."""

from functools import partial
from typing import Any, Callable, List, NamedTuple, Optional, Tuple, cast

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Model, torch2xp, xp2torch
from thinc.types import Floats2d

from ...bilm.batch import plan_batches
from ...errors import Errors
from ...layers.torch_shim import TorchShim
from ..shared.torch_layer import Dropout, Tok2VecModel, torch_layer
from .network import Candidates, RankerShape, SpanRanker
from .spans import Floats, MentionFacts, cut, find_facts, mask_scores

# Tokens that the network predicts at a time, unless a doc is longer.
_BATCH_TOKENS = 8192
# Tokens of a training part for each of its sentences, a bound if these are long.
_SENTENCE_TOKENS = 40


class CorefScores(NamedTuple):
    """Scores of a doc, or, in training, of a part of it.

    start (int): first token that was read; the others are counted from there.
    mentions (Floats): shape (n_tokens, max_span): of the spans as mentions, before the sigmoid, by
        first token and number of tokens less 1; -inf where no mention can be.
    links (Floats): shape (n_mentions, 1 + k): of no antecedent, 0, and of the antecedents, before
        the softmax; -inf for missing ones.
    candidates (Candidates): the mentions that were kept, and their antecedents.
    """

    start: int
    mentions: Floats
    links: Floats
    candidates: Candidates


class CorefGradient(NamedTuple):
    """In the shapes of `CorefScores`."""

    mentions: Floats
    links: Floats


CorefModel = Model[List[Doc], List[CorefScores]]


def build_coref_span_ranker_v1(
    tok2vec: Tok2VecModel,
    width: int = 200,
    depth: int = 1,
    max_span: int = 20,
    share: float = 0.3,
    n_antecedents: int = 50,
    max_train_sentences: int = 40,
    dropout: float = 0.3,
    word_match: bool = False,
) -> CorefModel:
    """Find clusters of mentions by ranking spans, coarse to fine (Lee et al. 2017, 2018).

    tok2vec (Tok2VecModel): any; its width may be unknown until the model is initialized.
    width (int): of the biLSTM, half for each direction, and of all other layers; even.
    depth (int): layers of the biLSTM, at least 1.
    max_span (int): tokens of the longest mention, at least 1.
    share (float): spans that are kept as possible mentions, of the number of tokens, in (0, 1].
    n_antecedents (int): mentions that are compared closely with each mention, at least 1.
    max_train_sentences (int): a longer doc is cut to this number of sentences in a row, other ones
        in each pass, and to 40 tokens for each of them, which is also the limit for docs without
        sentences. In prediction docs are read whole.
    dropout (float): probability in [0, 1) that an input of a layer is dropped in training. Not
        driven by [training] dropout.
    word_match (bool): whether the network gets if two mentions share some or all of their words,
        without stop words.
    RETURNS (CorefModel): docs -> scores.
    RAISES (ValueError): EL012 for a number below its least, EL191 for other values out of range.
    """
    shape = RankerShape(
        width, depth, max_span, share, n_antecedents, word_match, max_train_sentences
    )
    attrs = {"dropout": Dropout(dropout), "shape": shape}
    build = partial(SpanRanker, shape=shape)
    ranker = torch_layer("span_ranker_rows", _ranker_forward, build, attrs=attrs)
    model: CorefModel = Model(
        "span_ranker", span_ranker_forward, init=span_ranker_init, layers=[tok2vec, ranker]
    )
    model.set_ref("tok2vec", tok2vec)
    return model


def build_coref_span_ranker_v2(
    tok2vec: Tok2VecModel,
    width: int = 200,
    depth: int = 1,
    max_span: int = 20,
    share: float = 0.3,
    n_antecedents: int = 50,
    max_train_sentences: int = 40,
    dropout: float = 0.3,
    word_match: bool = True,
) -> CorefModel:
    """As `build_coref_span_ranker_v1`; `word_match` is true by default."""
    sizes = width, depth, max_span, share, n_antecedents, max_train_sentences
    return build_coref_span_ranker_v1(tok2vec, *sizes, dropout, word_match)


def span_ranker_init(model: CorefModel, X: Optional[List[Doc]] = None, Y: Any = None) -> CorefModel:
    """Initialize the tok2vec, then what reads it."""
    tok2vec, ranker = model.layers
    tok2vec.initialize(X=X)
    ranker.initialize(X=None if X is None else tok2vec.predict(X))
    return model


def span_ranker_forward(
    model: CorefModel, docs: List[Doc], is_train: bool
) -> Tuple[List[CorefScores], Callable]:
    """Docs -> scores; long docs are cut in training. Backprop takes `List[CorefGradient]`."""
    tok2vec, ranker = model.layers
    if not ranker.has_dim("nI"):
        raise ValueError(Errors.EL190)
    vectors, backprop_vectors = tok2vec(docs, is_train)
    max_span, n = get_max_span(model), ranker.attrs["shape"].max_train_sentences
    parts = [cut(d, n, n * _SENTENCE_TOKENS) if is_train else (0, len(d)) for d in docs]
    facts = [find_facts(doc, *part, max_span) for doc, part in zip(docs, parts)]
    nothing = Candidates(np.zeros((0, 2), dtype="int64"), np.zeros((0, 0), dtype="int64"))
    empty = np.zeros((0, max_span), dtype="float32"), np.zeros((0, 1), dtype="float32")
    scores = [CorefScores(0, *empty, nothing) for _ in docs]
    # In training all docs are one batch.
    budget = sum(map(len, docs)) if is_train else _BATCH_TOKENS
    backprops = []
    for batch in plan_batches([len(doc) for doc in docs], budget, n_boundaries=0):
        Xs = [vectors[i][slice(*parts[i])] for i in batch]
        found, backprop = ranker((Xs, [facts[i] for i in batch]), is_train)
        if is_train:
            backprops.append((batch, backprop))
        for i, own in zip(batch, found):
            scores[i] = own

    def backprop_docs(d_scores: List[CorefGradient]) -> List[Doc]:
        d_vectors = [model.ops.alloc2f(*vector.shape) for vector in vectors]
        for batch, backprop in backprops:
            for i, dX in zip(batch, backprop([d_scores[i] for i in batch])):
                d_vectors[i][slice(*parts[i])] += dX
        return backprop_vectors(d_vectors)

    return scores, backprop_docs


def _ranker_forward(
    model: Model, inputs: Tuple[List[Floats2d], List[MentionFacts]], is_train: bool
) -> Tuple[List[CorefScores], Callable]:
    """Vectors and facts of docs with at least a token -> their scores."""
    Xs, facts = inputs
    shim = cast(TorchShim, model.shims[0])
    lengths = [len(X) for X in Xs]
    X = xp2torch(model.ops.xp.concatenate(Xs), requires_grad=is_train, device=shim.device)
    dropout = model.attrs["dropout"].rate if is_train else 0.0
    arguments = ArgsKwargs((X, lengths, facts, dropout), {})
    (Y, candidates), backprop_torch = shim(arguments, is_train)
    scores, flat = [], Y.detach().cpu().numpy()
    for own, kept in zip(facts, candidates):
        n_tokens, n_mentions = len(own.n_widths), len(kept.spans)
        sizes = (
            n_tokens * model.attrs["shape"].max_span,
            n_mentions * (1 + kept.antecedents.shape[1]),
        )
        grid, links, flat = np.split(flat, [sizes[0], sum(sizes)])
        mentions = mask_scores(grid.reshape(n_tokens, -1), own)
        scores.append(CorefScores(own.start, mentions, links.reshape(n_mentions, -1), kept))

    def backprop(d_scores: List[CorefGradient]) -> List[Floats2d]:
        flat = np.concatenate([array.ravel() for own in d_scores for array in own])
        dY = torch.as_tensor(flat, dtype=Y.dtype, device=Y.device)
        backprop_torch(ArgsKwargs(args=((Y,),), kwargs={"grad_tensors": (dY,)}))
        dX = torch.zeros_like(X) if X.grad is None else X.grad
        return model.ops.unflatten(cast(Floats2d, torch2xp(dX)), model.ops.asarray1i(lengths))

    return scores, backprop


def get_max_span(model: CorefModel) -> int:
    """Tokens of the longest mention."""
    _, ranker = model.layers
    return ranker.attrs["shape"].max_span
