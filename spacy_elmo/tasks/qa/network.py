"""`QABiDAF`: where in a context the answer to a question starts and ends; the windows of a context
that are read, and the probabilities of spans."""

import random
from functools import partial
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple, Union, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor, nn

from ...errors import Errors
from ...utils import with_defaults
from ..shared.annotations import Place
from ..shared.attention import map_parts, masked_softmax, pad, plan_padded, pool_weighted
from ..shared.bilstm import BiLSTM, SkipEncoder, require_even
from ..shared.text_pairs import MATCH_WIDTH, add_matches, find_matches, get_pair
from ..shared.torch_layer import (
    Dropout,
    Tok2VecModel,
    drop,
    init_reader,
    run_rows,
    run_slices,
    torch_layer,
)

PAIR_NAMES = ("question", "context")
# Score of a span that cannot be an answer. Not -inf, of which differences are undefined.
_LOWEST = -1e30
# Hidden units of the no-answer score, as in Clark & Gardner 2018.
_NONE_WIDTH = 80


class QAReading(NamedTuple):
    """The parts of a doc that are read: the question, and windows of the context in order; none
    without a pair, or without words in either text."""

    doc: Doc
    question: Place
    windows: List[Place]


class Scores(NamedTuple):
    """Output for a doc: for each window shape (n_tokens + 1, 2), start and end of each token; in
    the last row the no-answer score and 0."""

    windows: List[Place]
    rows: List[Floats2d]


class Ranked(NamedTuple):
    """Tokens of the doc, the end not included, as an answer."""

    start: int
    end: int
    probability: float


def read_doc(doc: Doc, window: int, stride: int) -> QAReading:
    """Plan to read a doc in windows of `window` tokens, which begin `stride` tokens apart. A
    question is cut to one window."""
    pair = get_pair(doc, PAIR_NAMES)
    if pair is None or any(all(token.is_space for token in text) for text in pair):
        return QAReading(doc, (0, 0), [])
    question, context = pair
    asked = question.start, min(question.end, question.start + window)
    start, end = context.start, context.end
    windows = [(start, min(start + window, end))]
    while windows[-1][1] < end:
        start += stride
        windows.append((start, min(start + window, end)))
    return QAReading(doc, asked, windows)


def choose_windows(reading: QAReading, answers: Sequence[Place], most: int) -> QAReading:
    """Choose at most `most` windows to learn from: some with an answer, if there are any, and
    random ones without, so that a long context costs no more than a short one."""
    windows = reading.windows
    if len(windows) <= most:
        return reading
    having = [w for w in windows if any(w[0] <= start and end <= w[1] for start, end in answers)]
    others = [w for w in windows if w not in having]
    kept = random.sample(having, min(len(having), max(1, most - 1)))
    kept += random.sample(others, min(len(others), most - len(kept)))
    return reading._replace(windows=sorted(kept))


class SpanTable(NamedTuple):
    """Scores of all spans of a doc that can be an answer; a span in several windows has the
    sum over them. The probabilities of all spans and of no answer sum to 1: the shared norm of
    Clark & Gardner 2018, section 4, over spans."""

    windows: List[Place]
    # Log scores of spans by their first token and number of tokens less 1, shape (n_tokens,
    # max_answer); and the same of each window.
    joined: NDArray
    parts: List[NDArray]
    # The no-answer score, the least of all windows: an answer in one is enough.
    none: float
    none_window: int
    # Logarithm of the sum over all spans and no answer.
    total: float

    @property
    def first(self) -> int:
        """The token of the doc of the first row."""
        return self.windows[0][0]


def make_table(
    windows: List[Place], rows: List[NDArray], is_word: NDArray, max_answer: int
) -> SpanTable:
    """rows (List[NDArray]): `Scores.rows` in NumPy, at least one. is_word (NDArray): shape
    (n_doc_tokens,), whether a token can be first or last of an answer of at most `max_answer`."""
    first, last = windows[0][0], windows[-1][1]
    joined = np.full((last - first, max_answer), _LOWEST, dtype=rows[0].dtype)
    parts = []
    for (start, end), array in zip(windows, rows):
        part = _add_scores(array[:-1], is_word[start:end], max_answer)
        place = slice(start - first, end - first)
        joined[place] = np.logaddexp(joined[place], part)
        parts.append(part)
    nones = [array[-1, 0] for array in rows]
    none_window = int(np.argmin(nones))
    total = np.logaddexp(_sum_logs(joined), nones[none_window])
    return SpanTable(windows, joined, parts, nones[none_window], none_window, total)


def _add_scores(tokens: NDArray, is_word: NDArray, max_answer: int) -> NDArray:
    """Start + end of each span, shape (n, max_answer), from tokens of shape (n, 2)."""
    starts, ends = (np.where(is_word, column, _LOWEST) for column in tokens.T)
    ends = np.concatenate([ends, np.full(max_answer - 1, _LOWEST, dtype=tokens.dtype)])
    spans = starts[:, None] + ends[np.add.outer(np.arange(len(starts)), np.arange(max_answer))]
    return np.maximum(spans, _LOWEST).astype(tokens.dtype)


def _sum_logs(values: NDArray) -> float:
    most = values.max()
    return most + np.log(np.exp(values - most).sum())


def rank_spans(table: SpanTable, n: int) -> List[Ranked]:
    """The n likeliest spans, best first; of equal ones the first one."""
    flat = table.joined.ravel()
    order = np.argsort(-flat, kind="stable")[:n]
    ranked = []
    for i in order[flat[order] > _LOWEST / 2]:
        start, n_more = divmod(int(i), table.joined.shape[1])
        start += table.first
        ranked.append(Ranked(start, start + n_more + 1, float(np.exp(flat[i] - table.total))))
    return ranked


def get_gradient(
    table: SpanTable, answers: Sequence[Place]
) -> Optional[Tuple[float, List[NDArray]]]:
    """Negative log likelihood of all gold answers together, or of no answer, in nats, and its
    gradient, arrays as `Scores.rows`; None if no answer is a span of the table."""
    n_tokens, max_answer = table.joined.shape
    places = {(start - table.first, end - start - 1) for start, end in answers}
    inside = [p for p in places if 0 <= p[0] < n_tokens and 0 <= p[1] < max_answer]
    known = sorted(p for p in inside if table.joined[p] > _LOWEST / 2)
    if answers and not known:
        return None
    d_joined = np.exp(table.joined - table.total)
    d_none = np.exp(table.none - table.total)
    if known:
        rows, columns = map(list, zip(*known))
        gold = table.joined[rows, columns]
        right = _sum_logs(gold)
        d_joined[rows, columns] -= np.exp(gold - right)
    else:
        right = table.none
        d_none -= 1
    return float(table.total - right), _backprop_table(table, d_joined, d_none)


def _backprop_table(table: SpanTable, d_joined: NDArray, d_none: float) -> List[NDArray]:
    """Backprop of `make_table`."""
    gradients = []
    for part, (start, end) in zip(table.parts, table.windows):
        n = end - start
        place = slice(start - table.first, end - table.first)
        d_part = d_joined[place] * np.exp(part - table.joined[place])
        gradient = np.zeros((n + 1, 2), dtype=part.dtype)
        gradient[:-1, 0] = d_part.sum(axis=1)
        for k in range(min(d_part.shape[1], n)):
            gradient[k:-1, 1] += d_part[: n - k, k]
        gradients.append(gradient)
    gradients[table.none_window][-1, 0] = d_none
    return gradients


QAModel = Model[List[QAReading], List[Scores]]


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
    RAISES (ValueError): EL012 for an odd width, or a `dropout` out of range.
    """
    require_even("width", width)
    build = partial(BiDAF, width=width, self_attention=self_attention, word_match=word_match)
    bidaf = torch_layer("bidaf_rows", run_rows, build, nO=2, attrs={"dropout": Dropout(dropout)})
    model: QAModel = Model("bidaf", bidaf_forward, init=bidaf_init, layers=[tok2vec, bidaf])
    model.set_ref("tok2vec", tok2vec)
    return model


build_qa_bidaf_v2 = with_defaults(build_qa_bidaf_v1, word_match=True)


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
    # Number of the doc, number of the window, and the window.
    windows = [(i, k, w) for i, r in enumerate(readings) for k, w in enumerate(r.windows)]
    plan = plan_padded([end - start for *_, (start, end) in windows])
    batches = [[windows[i] for i in group] for group in plan]
    groups = []
    for batch in batches:
        # All questions, then all windows.
        slices = [(i, readings[i].question) for i, *_ in batch] + [(i, w) for i, _, w in batch]
        matches = find_matches([(readings[i].doc, readings[i].question, w) for i, _, w in batch])
        groups.append((slices, (matches,)))
    Ys, backprop_slices = run_slices(bidaf, vectors, groups, is_train)
    for batch, Y in zip(batches, cast(List[Floats2d], Ys)):
        first, nones = 0, Y[-len(batch) :]
        for row, (i, k, (start, end)) in enumerate(batch):
            last = first + end - start
            scores[i].rows[k] = xp.concatenate([Y[first:last], nones[row : row + 1]])
            first = last

    def backprop(d_rows: List[List[Floats2d]]) -> List[Doc]:
        dYs = []
        for batch in batches:
            rows = [d_rows[i][k] for i, k, _ in batch]
            dYs.append(xp.concatenate([*(r[:-1] for r in rows), *(r[-1:] for r in rows)]))
        return backprop_vectors(backprop_slices(dYs))

    return scores, backprop


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
        """X (Tensor): shape (n_tokens, nI): all questions, then all contexts, of 2 * n lengths of
        at least 1. matches: see `find_matches`. RETURNS (Tensor): shape (n_context_tokens + n, 2):
        start and end of each token of the contexts; then, for each context, the no-answer score
        and 0."""
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
        """C, Q (Tensor): contexts and questions, (n_tokens_c, width) and (n_tokens_q, width). more:
        further numbers of the contexts. RETURNS (Tensor): shape (n_tokens_c, nO)."""
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
