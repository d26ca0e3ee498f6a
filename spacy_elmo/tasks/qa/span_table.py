"""Scores of starts and ends -> probabilities of spans, normalised over all windows of a doc."""

from typing import List, NamedTuple, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from ..shared.places import Place

# Of a span that cannot be an answer. Not -inf, of which differences are not defined.
_LOWEST = -1e30


class Ranked(NamedTuple):
    """start, end (int): tokens of the doc, the end not included. probability (float)."""

    start: int
    end: int
    probability: float


class SpanTable(NamedTuple):
    """The scores of all spans of a doc that can be an answer; a span in several windows has the
    sum of what it has in each. The probabilities of all spans and of no answer sum to 1: the
    shared norm of Clark & Gardner 2018, section 4, over spans.

    windows (List[Place]): what was read, in order.
    joined (NDArray): log scores, shape (n_tokens, max_answer): of the span that starts at the
        row's token and has one token more than the column says.
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
        """RETURNS (int): The token of the doc that the first row is of."""
        return self.windows[0][0]


def make_table(
    windows: List[Place], rows: List[NDArray], is_word: NDArray, max_answer: int
) -> SpanTable:
    """windows (List[Place]): of a doc, at least one. rows (List[NDArray]): the same as
    `scores.rows`, in NumPy. is_word (NDArray): shape (n_doc_tokens,), whether a token can be
    first or last of an answer. max_answer (int): most tokens of one. RETURNS (SpanTable): the
    table."""
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
    """tokens (NDArray): shape (n, 2). RETURNS (NDArray): start + end of each span, (n, most)."""
    starts, ends = (np.where(is_word, column, _LOWEST) for column in tokens.T)
    ends = np.concatenate([ends, np.full(max_answer - 1, _LOWEST, dtype=tokens.dtype)])
    spans = starts[:, None] + ends[np.add.outer(np.arange(len(starts)), np.arange(max_answer))]
    return np.maximum(spans, _LOWEST).astype(tokens.dtype)


def _sum_logs(values: NDArray) -> float:
    """RETURNS (float): The logarithm of the sum of the exponentials."""
    most = values.max()
    return most + np.log(np.exp(values - most).sum())


def rank_spans(table: SpanTable, n: int) -> List[Ranked]:
    """table (SpanTable): of a doc. n (int): most answers. RETURNS (List[Ranked]): the likeliest
    spans, best first; of equal ones the first one."""
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


def find_known(table: SpanTable, answers: Sequence[Place]) -> List[Tuple[int, int]]:
    """answers (Sequence[Place]): gold spans. RETURNS (List[Tuple[int, int]]): Places in the table
    of those that it has."""
    n_tokens, max_answer = table.joined.shape
    places = {(start - table.first, end - start - 1) for start, end in answers}
    inside = [p for p in places if 0 <= p[0] < n_tokens and 0 <= p[1] < max_answer]
    return sorted(p for p in inside if table.joined[p] > _LOWEST / 2)


def get_none_probability(table: SpanTable) -> float:
    """RETURNS (float): That there is no answer."""
    return float(np.exp(table.none - table.total))


def get_gradient(table: SpanTable, places: List[Tuple[int, int]]) -> Tuple[float, List[NDArray]]:
    """The negative log likelihood of the gold answers together (the marginal over them), or of no
    answer.

    table (SpanTable): of a doc.
    places (List[Tuple[int, int]]): see `find_known`; none for a question without an answer.
    RETURNS (Tuple[float, List[NDArray]]): in nats, and its gradient, arrays as `Scores.rows`.
    """
    d_joined = np.exp(table.joined - table.total)
    d_none = np.exp(table.none - table.total)
    if places:
        rows, columns = map(list, zip(*places))
        gold = table.joined[rows, columns]
        right = _sum_logs(gold)
        d_joined[rows, columns] -= np.exp(gold - right)
    else:
        right = table.none
        d_none -= 1
    return float(table.total - right), _spread(table, d_joined, d_none)


def _spread(table: SpanTable, d_joined: NDArray, d_none: float) -> List[NDArray]:
    """The way back of `make_table`."""
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
