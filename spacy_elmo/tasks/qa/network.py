"""`QABiDAF`: where in a context the answer to a question starts and ends."""

from functools import partial
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple, Union, cast

import torch
import torch.nn.functional as F
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor, nn

from ...errors import Errors
from ..shared.annotations import Place
from ..shared.attention import map_parts, masked_softmax, pad, plan_padded, pool_weighted
from ..shared.bilstm import BiLSTM, SkipEncoder, require_even
from ..shared.text_pairs import MATCH_WIDTH, add_matches, find_matches
from ..shared.torch_layer import (
    Dropout,
    Tok2VecModel,
    drop,
    init_reader,
    run_rows,
    run_slices,
    torch_layer,
)
from .spans import QAReading, Scores

QAModel = Model[List[QAReading], List[Scores]]
# Hidden units of the no-answer score, as in Clark & Gardner 2018.
_NONE_WIDTH = 80


class _Part(NamedTuple):
    """A window: number of the doc, its question, the window, its number in the doc."""

    doc: int
    question: Place
    window: Place
    number: int


def build_qa_bidaf_v1(
    tok2vec: Tok2VecModel,
    width: int = 128,
    self_attention: bool = True,
    dropout: float = 0.2,
    word_match: bool = False,
) -> QAModel:
    """Find answers by bidirectional attention flow (Seo et al. 2017), with the self-attention and
    the no-answer score of Clark & Gardner 2018.

    tok2vec (Tok2VecModel): any; its width may be unknown until the model is initialized. The
        `output` of an ElmoTok2Vec without `encode` is appended to the output of the first biLSTM.
    width (int): of the encodings, half for each direction; even.
    self_attention (bool): whether contexts attend to themselves, too.
    dropout (float): probability in [0, 1) that an input of a layer is dropped in training. Not
        driven by [training] dropout.
    word_match (bool): whether the network gets which words are in both question and context, as in
        FastQA (Weissenborn et al. 2017, section 3.1).
    RETURNS (QAModel): readings of docs -> scores of starts and ends.
    RAISES (ValueError): EL191 for an odd width, or a `dropout` out of range.
    """
    require_even("width", width)
    build = partial(BiDAF, width=width, self_attention=self_attention, word_match=word_match)
    bidaf = torch_layer("bidaf_rows", run_rows, build, nO=2, attrs={"dropout": Dropout(dropout)})
    model: QAModel = Model("bidaf", bidaf_forward, init=bidaf_init, layers=[tok2vec, bidaf])
    model.set_ref("tok2vec", tok2vec)
    return model


def build_qa_bidaf_v2(
    tok2vec: Tok2VecModel,
    width: int = 128,
    self_attention: bool = True,
    dropout: float = 0.2,
    word_match: bool = True,
) -> QAModel:
    """As `build_qa_bidaf_v1`; `word_match` is true by default."""
    return build_qa_bidaf_v1(tok2vec, width, self_attention, dropout, word_match)


def bidaf_init(model: QAModel, X: Optional[List[QAReading]] = None, Y: Any = None) -> QAModel:
    """Initialize from some readings, whatever their windows."""
    return init_reader(model, None if X is None else [reading.doc for reading in X])


def bidaf_forward(
    model: QAModel, X: Union[List[QAReading], List[Doc]], is_train: bool
) -> Tuple[List[Scores], Callable]:
    """Readings -> scores; docs alone, as `spacy debug model` gives them, get none. Backprop takes
    List[List[Floats2d]] of the same shapes."""
    tok2vec, bidaf = model.layers
    if not bidaf.has_dim("nI"):
        raise ValueError(Errors.EL190)
    xp = model.ops.xp
    readings = [QAReading(x, (0, 0), []) if isinstance(x, Doc) else x for x in X]
    vectors, backprop_vectors = tok2vec([reading.doc for reading in readings], is_train)
    scores = [Scores(r.windows, [cast(Any, None)] * len(r.windows)) for r in readings]
    batches = _batch(readings)
    groups = []
    for parts in batches:
        # All questions, then all windows.
        slices = [(p.doc, p.question) for p in parts] + [(p.doc, p.window) for p in parts]
        matches = find_matches([(readings[p.doc].doc, p.question, p.window) for p in parts])
        groups.append((slices, (matches,)))
    Ys, backprop_slices = run_slices(bidaf, vectors, groups, is_train)
    for parts, Y in zip(batches, cast(List[Floats2d], Ys)):
        start, no_answer = 0, len(Y) - len(parts)
        for i, part in enumerate(parts, start=no_answer):
            end = start + part.window[1] - part.window[0]
            scores[part.doc].rows[part.number] = xp.concatenate([Y[start:end], Y[i : i + 1]])
            start = end

    def backprop(d_rows: List[List[Floats2d]]) -> List[Doc]:
        dYs = []
        for parts in batches:
            rows = [d_rows[part.doc][part.number] for part in parts]
            dYs.append(xp.concatenate([*(r[:-1] for r in rows), *(r[-1:] for r in rows)]))
        return backprop_vectors(backprop_slices(dYs))

    return scores, backprop


def _batch(readings: List[QAReading]) -> List[List[_Part]]:
    """Windows of similar length together, in bounded memory."""
    parts = [
        _Part(i, reading.question, window, k)
        for i, reading in enumerate(readings)
        for k, window in enumerate(reading.windows)
    ]
    lengths = [part.window[1] - part.window[0] for part in parts]
    return [[parts[i] for i in group] for group in plan_padded(lengths)]


class BiDAF(nn.Module):
    """Questions and contexts -> scores of starts, of ends, and of no answer. nI (int): width of a
    token, of which `skip_width` numbers skip the first encoder. See `build_qa_bidaf_v1`."""

    def __init__(
        self, nI: int, skip_width: int = 0, *, width: int, self_attention: bool, word_match: bool
    ) -> None:
        super().__init__()
        n_match = MATCH_WIDTH if word_match else 0
        self.match: Optional[nn.Embedding] = nn.Embedding(2, n_match) if word_match else None
        self.encode = SkipEncoder(n_match + nI, skip_width, width)
        self.attend = BiAttention(width + skip_width, width, n_match)
        self.attend_self: Optional[SelfAttention] = SelfAttention(width) if self_attention else None
        self.read_start, self.start = BiLSTM(width, width), nn.Linear(width, 1)
        self.read_end, self.end = BiLSTM(2 * width, width), nn.Linear(width, 1)
        self.weigh = nn.Linear(width, 1)
        self.none = nn.Sequential(
            nn.Linear(3 * width, _NONE_WIDTH), nn.ReLU(), nn.Linear(_NONE_WIDTH, 1)
        )

    def forward(
        self, X: Tensor, lengths: List[int], matches: Sequence[bool], dropout: float = 0.0
    ) -> Tensor:
        """X (Tensor): shape (n_tokens, nI): all questions, then all contexts. lengths
        (List[int]): 2 * n of them, each at least 1. matches (Sequence[bool]): for each token
        whether its word is in both texts; not read without `word_match`. dropout (float): before
        layers of weights.
        RETURNS (Tensor): shape (n_context_tokens + n, 2): start and end of each token of the
            contexts; then, for each context, the no-answer score and 0."""
        n = len(lengths) // 2
        n_asked = sum(lengths[:n])
        X, more = drop(X, dropout), []
        if self.match is not None:
            X, M = add_matches(self.match, matches, X)
            more = [M[n_asked:]]
        X = self.encode(X, lengths)
        Q, C = X[:n_asked], X[n_asked:]
        X = self.attend(C, lengths[n:], Q, lengths[:n], dropout, more)  # (n_context_tokens, width)
        lengths = lengths[n:]
        if self.attend_self is not None:
            X = self.attend_self(X, lengths, dropout)
        H = self.read_start(drop(X, dropout), lengths)
        E = self.read_end(drop(torch.cat([X, H], dim=1), dropout), lengths)
        scores = torch.cat([self.start(H), self.end(E)], dim=1)  # (n_context_tokens, 2)
        pooled = []
        for rows, weights in ((H, scores[:, :1]), (E, scores[:, 1:]), (X, self.weigh(X))):
            padded, mask = pad(rows, lengths)
            pooled.append(pool_weighted(padded, pad(weights, lengths)[0].squeeze(2), mask))
        none = self.none(torch.cat(pooled, dim=1))  # (n, 1)
        return torch.cat([scores, F.pad(none, (0, 1))])


class Similarity(nn.Module):
    """Similarity of each token of two texts: a . w1 + b . w2 + (a * w3) . b (Seo et al. 2017,
    equation 1)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.of_a = nn.Linear(width, 1)
        self.of_b = nn.Linear(width, 1, bias=False)
        self.of_both = nn.Parameter(torch.empty(width).uniform_(-(width**-0.5), width**-0.5))

    def forward(self, A: Tensor, B: Tensor) -> Tensor:
        """(n, len_a, width) and (n, len_b, width) -> (n, len_a, len_b)."""
        return self.of_a(A) + self.of_b(B).transpose(1, 2) + (A * self.of_both) @ B.transpose(1, 2)


class BiAttention(nn.Module):
    """Attention between context and question, in both directions (Seo et al. 2017, section 2.4).
    n_more (int): further numbers of a token of the context."""

    def __init__(self, width: int, nO: int, n_more: int = 0) -> None:
        super().__init__()
        self.similarity = Similarity(width)
        self.merge = nn.Linear(4 * width + n_more, nO)

    def forward(
        self,
        C: Tensor,
        lengths_c: List[int],
        Q: Tensor,
        lengths_q: List[int],
        dropout: float,
        more: Sequence[Tensor] = (),
    ) -> Tensor:
        """C, Q (Tensor): contexts and questions, (n_tokens_c, width) and (n_tokens_q, width). more
        (Sequence[Tensor]): further numbers of the contexts, (n_tokens_c, n_more) together.
        RETURNS (Tensor): shape (n_tokens_c, nO)."""
        padded_c, mask_c = pad(C, lengths_c)  # (n, len_c, width)
        padded_q, mask_q = pad(Q, lengths_q)  # (n, len_q, width)
        both = mask_c.unsqueeze(2) & mask_q.unsqueeze(1)
        scores = self.similarity(padded_c, padded_q)  # (n, len_c, len_q)
        of_q = (masked_softmax(scores, both) @ padded_q)[mask_c]  # (n_tokens_c, width)
        lowest = torch.finfo(scores.dtype).min
        best = scores.masked_fill(~both, lowest).amax(dim=2)  # (n, len_c)
        of_c = pool_weighted(padded_c, best, mask_c)  # (n, width)
        of_c = of_c.repeat_interleave(mask_c.sum(dim=1), dim=0)  # (n_tokens_c, width)
        parts = [C, of_q, C * of_q, C * of_c, *more]
        return torch.relu(map_parts(self.merge, parts, dropout))


class SelfAttention(nn.Module):
    """Attention of each token to all others of its context, with a residual connection (Clark &
    Gardner 2018, section 3.1)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.encode = BiLSTM(width, width)
        self.similarity = Similarity(width)
        self.merge = nn.Linear(3 * width, width)

    def forward(self, X: Tensor, lengths: List[int], dropout: float) -> Tensor:
        """X (Tensor): shape (n_tokens, width), which stays."""
        own = self.encode(drop(X, dropout), lengths)  # (n_tokens, width)
        padded, mask = pad(own, lengths)
        others = ~torch.eye(padded.shape[1], dtype=torch.bool, device=X.device)
        both = mask.unsqueeze(2) & mask.unsqueeze(1) & others
        read = (masked_softmax(self.similarity(padded, padded), both) @ padded)[mask]  # as `own`
        return X + torch.relu(map_parts(self.merge, [own, read, own * read], dropout))
