"""The architecture of "elmo_coref": docs -> scores of mentions and of their antecedents (Lee et al.
2017, 2018)."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, List, NamedTuple, Optional, Tuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from spacy.tokens import Doc
from thinc.api import ArgsKwargs, Model, torch2xp, xp2torch
from thinc.types import Floats2d
from torch import Tensor, nn

from ...bilm.batch import plan_batches
from ...errors import Errors
from ...layers.torch_shim import TorchShim
from ...utils import require_least, require_valid, with_defaults
from ..shared.bilstm import BiLSTM, require_even
from ..shared.torch_layer import Dropout, Tok2VecModel, drop, torch_layer
from .spans import (
    N_KINDS,
    Floats,
    Ints,
    MentionFacts,
    MentionWords,
    choose_spans,
    compare_words,
    cut,
    find_facts,
    find_texts,
    find_words,
    mask_scores,
)

# Tokens that the network predicts at a time, unless a doc is longer.
_BATCH_TOKENS = 8192
# Tokens of a training part for each of its sentences, a bound if these are long.
_SENTENCE_TOKENS = 40
# The attention of heads is bounded, so that exponentials can be summed span after span.
_BOUND = 5.0
# Mentions whose pairs are scored at a time.
_BLOCK = 256
# Distances 1, 2, 3, 4, 5-7, 8-15, 16-31, 32-63 and more mentions, as in Lee et al. 2017.
_BUCKETS = (2, 3, 4, 5, 8, 16, 32, 64)


@dataclass(frozen=True)
class RankerShape:
    """See `build_coref_span_ranker_v1`. A dataclass: Thinc would save other attributes."""

    width: int
    depth: int
    max_span: int
    share: float
    n_antecedents: int
    word_match: bool
    max_train_sentences: int = 40

    def __post_init__(self) -> None:
        require_even("width", self.width)
        for key in ("depth", "max_span", "n_antecedents", "max_train_sentences"):
            require_least(key, getattr(self, key), 1)
        expected = "spans to keep, of the number of tokens, in (0, 1], such as 0.3"
        require_valid(0 < self.share <= 1, "share", self.share, expected)


class Candidates(NamedTuple):
    """Mentions that were kept, counted from the first token that was read: start and end, shape
    (n_mentions, 2); and which may be antecedents, shape (n_mentions, k), -1 for none."""

    spans: Ints
    antecedents: Ints


class CorefScores(NamedTuple):
    """Scores of a doc, or, in training, of a part of it."""

    # First token that was read; the others are counted from there.
    start: int
    # Shape (n_tokens, max_span): spans as mentions, before the sigmoid, by first token and number
    # of tokens less 1; -inf where no mention can be.
    mentions: Floats
    # Shape (n_mentions, 1 + k): no antecedent, 0, and the antecedents, before the softmax; -inf
    # for missing ones.
    links: Floats
    candidates: Candidates


# In the shapes of `mentions` and `links`.
CorefGradient = Tuple[Floats, Floats]
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
    RAISES (ValueError): EL012 for values out of range.
    """
    sizes = width, depth, max_span, share, n_antecedents, word_match, max_train_sentences
    shape = RankerShape(*sizes)
    attrs = {"dropout": Dropout(dropout), "shape": shape}
    build = partial(SpanRanker, shape=shape)
    ranker = torch_layer("span_ranker_rows", _ranker_forward, build, attrs=attrs)
    model: CorefModel = Model(
        "span_ranker", span_ranker_forward, init=span_ranker_init, layers=[tok2vec, ranker]
    )
    model.set_ref("tok2vec", tok2vec)
    return model


build_coref_span_ranker_v2 = with_defaults(build_coref_span_ranker_v1, word_match=True)


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
    max_span, n = ranker.attrs["shape"].max_span, ranker.attrs["shape"].max_train_sentences
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


class SpanRanker(nn.Module):
    """End-to-end coreference by ranking spans."""

    def __init__(self, nI: int, shape: RankerShape) -> None:
        super().__init__()
        self.encode = BiLSTM(nI, shape.width, shape.depth)
        # Heads are found in the vectors, too: the paper takes them from there alone.
        self.spans = SpanScorer(nI + shape.width, shape.width, shape.max_span)
        self.antecedents = AntecedentScorer(
            shape.width, shape.n_antecedents, word_match=shape.word_match
        )
        self.share = shape.share
        self.word_match = shape.word_match

    def forward(
        self, X: Tensor, lengths: List[int], facts: List[MentionFacts], dropout: float = 0.0
    ) -> Tuple[Tensor, List[Candidates]]:
        """X (Tensor): shape (n_tokens, nI), docs of lengths of at least 1. RETURNS: all scores in
        one row: of each doc those of its spans, (n_tokens, max_span), then those of its links,
        (n_mentions, 1 + k); and the mentions of each doc."""
        X = drop(X, dropout)
        X = torch.cat([self.encode(X, lengths, dropout), X], dim=1)
        scores, candidates = [], []
        for tokens, own in zip(X.split(lengths), facts):
            roots = None if own.roots is None else torch.as_tensor(own.roots, device=X.device)
            grid = self.spans(tokens, roots, dropout)
            starts, ends = choose_spans(mask_scores(grid.detach().cpu().numpy(), own), self.share)
            texts = torch.as_tensor(find_texts(own.words, starts, ends), device=X.device)
            first = torch.as_tensor(starts, device=X.device)
            last = torch.as_tensor(ends - 1, device=X.device)
            spans = self.spans.represent(tokens, first, last, roots)
            words = find_words(own, starts, ends) if self.word_match else None
            links, antecedents = self.antecedents(
                spans, grid[first, last - first], texts, dropout, words
            )
            scores += [grid.flatten(), links.flatten()]
            candidates.append(Candidates(np.stack([starts, ends], 1), antecedents.cpu().numpy()))
        return torch.cat(scores), candidates


class SpanScorer(nn.Module):
    """Score spans as mentions (Lee et al. 2017, section 4): by first and last token, length and
    head, a mean of the tokens by learned attention. With a parse, the attention of the span's
    root gets a learned bonus, which is 0 unless docs with a parse were trained on."""

    def __init__(self, nI: int, width: int, max_span: int) -> None:
        super().__init__()
        # Linear maps of start, end and head, computed once for each token: no array has all spans
        # times the width of their parts.
        self.parts = nn.Linear(nI, 3 * width)
        self.attention = nn.Linear(nI, 1)
        self.root_bonus = nn.Parameter(torch.zeros(1))
        self.lengths = nn.Embedding(max_span, width)
        self.hidden = nn.Linear(width, width)
        self.output = nn.Linear(width, 1)
        self.max_span = max_span

    def forward(self, X: Tensor, roots: Optional[Tensor], dropout: float) -> Tensor:
        """Tokens of shape (n_tokens, nI) -> scores before the sigmoid, (n_tokens, max_span), by
        first token and number of tokens less 1; 0 for spans that end after the last token."""
        starts, ends, heads, weights = self._read_tokens(X)
        # Sums over the spans with one token less.
        total, norm = torch.zeros_like(heads), torch.zeros_like(weights)
        scores = []
        for w in range(min(self.max_span, len(X))):
            n = len(X) - w
            total = total[:n] + (weights * heads)[w:]
            norm = norm[:n] + weights[w:]
            root = None if roots is None else roots[:n, w]
            head = self._find_head(total, norm, heads, weights, root)
            spans = torch.relu(starts[:n] + ends[w:] + head + self.lengths.weight[w])
            hidden = torch.relu(self.hidden(drop(spans, dropout)))
            scores.append(F.pad(self.output(drop(hidden, dropout)).squeeze(1), (0, w)))
        grid = torch.stack(scores, dim=1)
        return F.pad(grid, (0, self.max_span - grid.shape[1]))  # (n_tokens, max_span)

    def represent(self, X: Tensor, first: Tensor, last: Tensor, roots: Optional[Tensor]) -> Tensor:
        """The spans from some first to last tokens, shape (n_spans,), as (n_spans, width)."""
        starts, ends, heads, weights = self._read_tokens(X)
        columns = first.unsqueeze(1) + torch.arange(self.max_span, device=X.device)
        inside = (columns <= last.unsqueeze(1)).unsqueeze(2)
        columns = columns.clamp(max=len(X) - 1)
        own = weights[columns] * inside  # (n_spans, max_span, 1)
        total = (own.transpose(1, 2) @ heads[columns]).squeeze(1)
        root = None if roots is None else roots[first, last - first]
        head = self._find_head(total, own.sum(dim=1), heads, weights, root)
        return torch.relu(starts[first] + ends[last] + head + self.lengths(last - first))

    def _read_tokens(self, X: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
        starts, ends, heads = self.parts(X).chunk(3, dim=1)
        return starts, ends, heads, torch.exp(_BOUND * torch.tanh(self.attention(X)))

    def _find_head(
        self, total: Tensor, norm: Tensor, heads: Tensor, weights: Tensor, root: Optional[Tensor]
    ) -> Tensor:
        if root is None:
            return total / norm
        bonus = torch.expm1(_BOUND * torch.tanh(self.root_bonus)) * weights[root]
        return (total + bonus * heads[root]) / (norm + bonus)


class AntecedentScorer(nn.Module):
    """Score pairs of mentions, coarse to fine (Lee et al. 2018, section 4): all by a bilinear form;
    the best of each mention by a network with one hidden layer, which also reads their distance,
    whether their texts are the same, and, with `word_match`, which words they share."""

    def __init__(self, width: int, n_antecedents: int, *, word_match: bool = False) -> None:
        super().__init__()
        self.coarse = nn.Linear(width, width, bias=False)
        self.alike_bonus = nn.Parameter(torch.zeros(1))
        self.mention = nn.Linear(width, width)
        self.antecedent = nn.Linear(width, width, bias=False)
        self.product = nn.Linear(width, width, bias=False)
        self.distances = nn.Embedding(len(_BUCKETS) + 1, width)
        self.alike = nn.Embedding(2, width)
        self.output = nn.Linear(width, 1)
        if word_match:
            self.shared = nn.Embedding(N_KINDS, width)
            self.shared_bonus = nn.Parameter(torch.zeros(N_KINDS))
        self.n_antecedents = n_antecedents

    def forward(
        self,
        mentions: Tensor,
        scores: Tensor,
        texts: Tensor,
        dropout: float,
        words: Optional[MentionWords] = None,
    ) -> Tuple[Tensor, Tensor]:
        """mentions (Tensor): shape (n_mentions, width), in the order of the text. scores, texts
        (Tensor): shape (n_mentions,). RETURNS: scores of no antecedent, always 0, and of the k
        best antecedents, (n_mentions, 1 + k); and which these are, (n_mentions, k). Where there
        are fewer, -inf and -1."""
        links, chosen = [], []
        buckets = torch.tensor(_BUCKETS, device=mentions.device)
        k = min(self.n_antecedents, len(mentions) - 1)
        for start in range(0, len(mentions), _BLOCK):
            rows = torch.arange(start, min(start + _BLOCK, len(mentions)), device=mentions.device)
            alike = texts[rows].unsqueeze(1) == texts  # (n_rows, n_mentions)
            kinds = None
            if words is not None:
                kinds = compare_words(words, start, start + len(rows)).to(mentions.device)
            with torch.no_grad():
                pairs = self.coarse(mentions[rows]) @ mentions.T + scores  # (n_rows, n_mentions)
                pairs = pairs + self.alike_bonus * alike
                if kinds is not None:
                    pairs = pairs + self.shared_bonus[kinds]
                is_before = torch.arange(len(mentions), device=rows.device) < rows.unsqueeze(1)
                best = pairs.masked_fill(~is_before, float("-inf")).topk(k, dim=1)
                found = best.indices.masked_fill(best.values == float("-inf"), -1)  # (n_rows, k)
            others = found.clamp(min=0)
            X, Y = mentions[rows].unsqueeze(1), mentions[others]  # (n_rows, k, width)
            alike = alike.gather(1, others)
            coarse = (self.coarse(X) * Y).sum(dim=2) + self.alike_bonus * alike
            distances = torch.bucketize(rows.unsqueeze(1) - others, buckets, right=True)
            hidden = self.mention(X) + self.antecedent(mentions)[others] + self.product(X * Y)
            hidden = hidden + self.distances(distances) + self.alike(alike.long())
            if kinds is not None:
                kinds = kinds.gather(1, others)
                coarse, hidden = coarse + self.shared_bonus[kinds], hidden + self.shared(kinds)
            fine = self.output(drop(torch.relu(hidden), dropout)).squeeze(2)
            linked = scores[rows].unsqueeze(1) + scores[others] + coarse + fine
            links.append(F.pad(linked.masked_fill(found < 0, float("-inf")), (1, 0)))
            chosen.append(found)
        return torch.cat(links), torch.cat(chosen)
