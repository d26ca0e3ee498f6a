"""The architecture of "elmo_coref": docs -> scores of mentions and of their antecedents."""

from dataclasses import dataclass
from functools import partial
from typing import Callable, List, NamedTuple, Tuple, cast

import numpy as np
import torch
from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Model, torch2xp, xp2torch
from thinc.types import Floats2d

from ...bilm.batch import plan_batches
from ...errors import Errors
from ...layers.torch_shim import TorchShim
from ...utils import require_least
from ..shared.dropout import Dropout
from ..shared.torch_layer import init_reader, torch_layer
from .mention_facts import Ints, MentionFacts, cut, find_facts
from .span_choice import Floats, mask_scores
from .span_ranker import Candidates, RankerShape, SpanRanker

Tok2VecModel = Model[List[Doc], List[Floats2d]]
# Tokens that the network reads at a time when nothing is learned, but at least a doc.
_BATCH_TOKENS = 8192
# Of a training part, for each of its sentences: bounds its size, whatever the sentences are.
_SENTENCE_TOKENS = 40


class CorefScores(NamedTuple):
    """Scores of a doc, or, in training, of a part of it.

    start (int): first token that was read; the others are counted from there.
    mentions (Floats): shape (n_tokens, max_span): of the spans as mentions, before the sigmoid, by
        first token and number of tokens less 1; -inf for what is no span.
    links (Floats): shape (n_mentions, 1 + k): of no antecedent, 0, and of the antecedents, before
        the softmax; -inf where there is none.
    candidates (Candidates): the spans that were kept, and their antecedents.
    """

    start: int
    mentions: Floats
    links: Floats
    candidates: Candidates


class CorefGradient(NamedTuple):
    """mentions, links (Floats): of `CorefScores`, in the same shapes."""

    mentions: Floats
    links: Floats


CorefModel = Model[List[Doc], List[CorefScores]]


@dataclass(frozen=True)
class TrainingPart:
    """n_sentences (int): of a doc, that are read in training. RAISES (ValueError): EL012 for fewer
    than one."""

    n_sentences: int

    def __post_init__(self) -> None:
        require_least("max_train_sentences", self.n_sentences, 1)


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
    n_antecedents (int): that are compared closely with each mention, at least 1.
    max_train_sentences (int): a longer doc is cut to so many sentences in a row, other ones in each
        pass, and to 40 tokens for each of them, which is also the measure for docs without
        sentences. In prediction docs are read whole.
    dropout (float): probability in [0, 1) that an input of a layer is dropped in training. Not
        driven by [training] dropout.
    word_match (bool): whether the network is told if two mentions share some or all of their words,
        stop words left out.
    RETURNS (CorefModel): docs -> scores.
    RAISES (ValueError): EL192 for an odd width, EL012 for a number below its least, EL210 for a
        `share` and EL191 for a `dropout` out of range.
    """
    shape = RankerShape(width, depth, max_span, share, n_antecedents, word_match)
    attrs = {"dropout": Dropout(dropout), "shape": shape, "part": TrainingPart(max_train_sentences)}
    build = partial(SpanRanker, shape=shape)
    ranker = torch_layer("span_ranker_rows", _ranker_forward, build, attrs=attrs)
    model: CorefModel = Model(
        "span_ranker", span_ranker_forward, init=init_reader, layers=[tok2vec, ranker]
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
    """As `build_coref_span_ranker_v1`, but told which words mentions share unless a config says
    otherwise."""
    sizes = width, depth, max_span, share, n_antecedents, max_train_sentences
    return build_coref_span_ranker_v1(tok2vec, *sizes, dropout, word_match)


def span_ranker_forward(
    model: CorefModel, docs: List[Doc], is_train: bool
) -> Tuple[List[CorefScores], Callable]:
    """docs (List[Doc]): any; long ones are cut in training.
    RETURNS (Tuple[List[CorefScores], Callable]): of each doc, and the way back, which takes
        `List[CorefGradient]`.
    """
    tok2vec, ranker = model.layers
    vectors, backprop_vectors = tok2vec(docs, is_train)
    max_span = get_max_span(model)
    n = ranker.attrs["part"].n_sentences
    parts = [cut(d, n, n * _SENTENCE_TOKENS) if is_train else (0, len(d)) for d in docs]
    facts = [find_facts(doc, *part, max_span) for doc, part in zip(docs, parts)]
    scores = [_score_nothing(max_span) for _ in docs]
    # In training all docs are one batch.
    budget = sum(map(len, docs)) if is_train else _BATCH_TOKENS
    ways_back = []
    for batch in plan_batches([len(doc) for doc in docs], budget, n_boundaries=0):
        Xs = [vectors[i][slice(*parts[i])] for i in batch]
        found, backprop = ranker((Xs, [facts[i] for i in batch]), is_train)
        if is_train:
            ways_back.append((batch, backprop))
        for i, own in zip(batch, found):
            scores[i] = own

    def backprop_docs(d_scores: List[CorefGradient]) -> List[Doc]:
        dvectors = [model.ops.alloc2f(*vector.shape) for vector in vectors]
        for batch, backprop in ways_back:
            for i, dX in zip(batch, backprop([d_scores[i] for i in batch])):
                dvectors[i][slice(*parts[i])] += dX
        return backprop_vectors(dvectors)

    return scores, backprop_docs


def _score_nothing(max_span: int) -> CorefScores:
    candidates = Candidates(np.zeros((0, 2), dtype="int64"), np.zeros((0, 0), dtype="int64"))
    empty = np.zeros((0, max_span), dtype="float32"), np.zeros((0, 1), dtype="float32")
    return CorefScores(0, *empty, candidates)


def _ranker_forward(
    model: Model, inputs: Tuple[List[Floats2d], List[MentionFacts]], is_train: bool
) -> Tuple[List[CorefScores], Callable]:
    """inputs (Tuple[List[Floats2d], List[MentionFacts]]): of docs with at least a token."""
    Xs, facts = inputs
    shim = cast(TorchShim, model.shims[0])
    lengths = [len(X) for X in Xs]
    flat = model.ops.xp.concatenate(Xs)
    X = xp2torch(flat, requires_grad=is_train, device=shim.device)
    dropout = model.attrs["dropout"].rate if is_train else 0.0
    arguments = ArgsKwargs((X, lengths, facts), {"dropout": dropout})
    (Y, candidates), backprop_torch = shim(arguments, is_train)
    scores = _split(Y.detach().cpu().numpy(), facts, candidates, model.attrs["shape"].max_span)

    def backprop(d_scores: List[CorefGradient]) -> List[Floats2d]:
        flat = np.concatenate([array.ravel() for own in d_scores for array in own])
        dY = torch.as_tensor(flat, dtype=Y.dtype, device=Y.device)
        backprop_torch(ArgsKwargs(args=((Y,),), kwargs={"grad_tensors": (dY,)}))
        dX = torch.zeros_like(X) if X.grad is None else X.grad
        return model.ops.unflatten(cast(Floats2d, torch2xp(dX)), model.ops.asarray1i(lengths))

    return scores, backprop


def _split(
    flat: Floats, facts: List[MentionFacts], candidates: List[Candidates], max_span: int
) -> List[CorefScores]:
    scores = []
    for own, kept in zip(facts, candidates):
        sizes: List[Tuple[int, int]] = [
            (len(own.n_widths), max_span),
            (len(kept.spans), kept.antecedents.shape[1] + 1),
        ]
        arrays = []
        for shape in sizes:
            n = shape[0] * shape[1]
            arrays.append(flat[:n].reshape(shape))
            flat = flat[n:]
        mentions = mask_scores(arrays[0], own)
        scores.append(CorefScores(own.start, mentions, arrays[1], kept))
    return scores


def require_weights(model: CorefModel) -> None:
    """model (CorefModel): of this architecture. RAISES (ValueError): EL190 if it has no weights."""
    _, ranker = model.layers
    if not ranker.has_dim("nI"):
        raise ValueError(Errors.EL190)


def get_max_span(model: CorefModel) -> int:
    """model (CorefModel): of this architecture. RETURNS (int): tokens of the longest mention."""
    _, ranker = model.layers
    return ranker.attrs["shape"].max_span


def get_mention_scores(scores: CorefScores) -> Floats:
    """scores (CorefScores): of a doc. RETURNS (Floats): those of the spans that were kept, shape
    (n_mentions,)."""
    spans: Ints = scores.candidates.spans
    return scores.mentions[spans[:, 0], spans[:, 1] - spans[:, 0] - 1]
