"""Windows of a context that the network reads, and the probabilities of spans as answers."""

import random
from typing import List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from thinc.types import Floats2d

from ..shared.annotations import Place
from ..shared.text_pairs import get_pair

PAIR_NAMES = ("question", "context")
# Score of a span that cannot be an answer. Not -inf, of which differences are undefined.
_LOWEST = -1e30


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
    """start, end (int): tokens of the doc, the end not included. probability (float)."""

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
    Clark & Gardner 2018, section 4, over spans.

    windows (List[Place]): what was read, in order.
    joined (NDArray): log scores, shape (n_tokens, max_answer): of the span that starts at the
        row's token, with one token more than the number of the column.
    parts (List[NDArray]): the same of each window, shape (n_window_tokens, max_answer).
    none (float): the no-answer score, the least of all windows: an answer in one is enough.
    none_window (int): number of that window.
    total (float): logarithm of the sum over all spans and no answer.
    """

    windows: List[Place]
    joined: NDArray
    parts: List[NDArray]
    none: float
    none_window: int
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
    max_answer = table.joined.shape[1]
    ranked = []
    for i in order[flat[order] > _LOWEST / 2]:
        start, n_more = divmod(int(i), max_answer)
        start += table.first
        probability = float(np.exp(flat[i] - table.total))
        ranked.append(Ranked(start, start + n_more + 1, probability))
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
    max_answer = d_joined.shape[1]
    for part, (start, end) in zip(table.parts, table.windows):
        n = end - start
        place = slice(start - table.first, end - table.first)
        d_part = d_joined[place] * np.exp(part - table.joined[place])
        gradient = np.zeros((n + 1, 2), dtype=part.dtype)
        gradient[:-1, 0] = d_part.sum(axis=1)
        for k in range(min(max_answer, n)):
            gradient[k:-1, 1] += d_part[: n - k, k]
        gradients.append(gradient)
    gradients[table.none_window][-1, 0] = d_none
    return gradients
