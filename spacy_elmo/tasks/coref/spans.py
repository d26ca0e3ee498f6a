"""Spans of a doc as possible mentions: facts beside their vectors, and which of them are kept."""

from typing import List, NamedTuple, Optional, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.tokens import Doc, Span
from torch import Tensor

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
# Two mentions share no words, some, all words of one of them, or all of both.
N_KINDS = 4


class MentionFacts(NamedTuple):
    """Facts of the tokens from `start` on, which are counted from there, shape (n_tokens,)."""

    start: int
    # Tokens of the longest span that begins here.
    n_widths: Ints
    # Hashes of the words in lower case.
    words: Ints
    # Neither stop words nor punctuation.
    is_content: NDArray[np.bool_]
    # No mention begins or ends with these.
    is_space: NDArray[np.bool_]
    # With a parse, the token of each span that is highest in it, shape (n_tokens, max_span).
    roots: Optional[Ints]


def find_facts(doc: Doc, start: int, end: int, max_span: int) -> MentionFacts:
    """Facts of the tokens from start to end."""
    tokens = doc[start:end]
    words = np.array([token.lower for token in tokens], dtype="uint64").astype("int64")
    ends = np.minimum(find_sentence_ends(doc)[start:end], end) - start
    n_widths = np.minimum(ends - np.arange(len(ends)), max_span)
    roots = find_roots(tokens, max_span) if doc.has_annotation("DEP") else None
    is_content = np.array([not (t.is_stop or t.is_punct or t.is_space) for t in tokens], dtype=bool)
    is_space = np.array([t.is_space for t in tokens], dtype=bool)
    return MentionFacts(start, n_widths, words, is_content, is_space, roots)


def find_sentence_ends(doc: Doc) -> Ints:
    """Where the sentence of each token ends, shape (n_tokens,); or the end of the doc."""
    ends = np.full(len(doc), len(doc), dtype="int64")
    if doc.has_annotation("SENT_START"):
        for sentence in doc.sents:
            ends[sentence.start : sentence.end] = sentence.end
    return ends


def find_roots(tokens: Span, max_span: int) -> Ints:
    """The first token of each span with the least depth in the parse: shape (n_tokens, max_span),
    undefined for spans that end after the last token."""
    depths = np.array([sum(1 for _ in token.ancestors) for token in tokens], dtype="int64")
    n = len(depths)
    roots = np.repeat(np.arange(n), max_span).reshape(n, max_span)
    for w in range(1, min(max_span, n)):
        before, last = roots[: n - w, w - 1], np.arange(w, n)
        roots[: n - w, w] = np.where(depths[before] <= depths[last], before, last)
    return roots


def cut(doc: Doc, n_sentences: int, n_tokens: int) -> Tuple[int, int]:
    """Choose sentences in a row, within two limits, of a long doc to train on, by NumPy's
    random numbers. RETURNS (Tuple[int, int]): first token, and the end."""
    starts = np.unique(np.append(0, find_sentence_ends(doc)))
    if len(doc) <= n_tokens and len(starts) - 1 <= n_sentences:
        return 0, len(doc)
    if len(starts) <= 2:
        first = int(np.random.randint(len(doc) - n_tokens + 1))
        return first, first + n_tokens
    # Of the first sentences whose part reaches the end of the doc, only the earliest is a choice.
    rest = len(doc) - starts[:-1]
    reaching = (np.arange(len(rest), 0, -1) <= n_sentences) & (rest <= n_tokens)
    n_firsts = len(rest) - max(int(reaching.sum()) - 1, 0)
    first = int(np.random.randint(n_firsts))
    start = int(starts[first])
    fitting = [int(end) for end in starts[first + 1 : first + 1 + n_sentences]]
    return start, max([end for end in fitting if end <= start + n_tokens] or [start + n_tokens])


def mask_scores(scores: Floats, facts: MentionFacts) -> Floats:
    """Scores of spans, shape (n_tokens, max_span), -inf where no mention can be."""
    n_tokens, max_span = scores.shape
    extra = np.arange(max_span)
    is_span = extra < facts.n_widths.reshape(-1, 1)
    lasts = np.minimum(np.arange(n_tokens).reshape(-1, 1) + extra, n_tokens - 1)
    is_mention = is_span & ~facts.is_space.reshape(-1, 1) & ~facts.is_space[lasts]
    # In a doc of whitespace alone any span will do: at least one is always kept.
    return np.where(is_mention if is_mention.any() else is_span, scores, np.float32("-inf"))


def choose_spans(scores: Floats, share: float) -> Tuple[Ints, Ints]:
    """Keep the best spans, of which no two cross (Lee et al. 2017, section 5), as many as `share`
    of the tokens, at least one. scores (Floats): shape (n_tokens, max_span), -inf where no
    mention can be. RETURNS: starts and ends, shape (n_spans,), in the order of the text."""
    n_tokens, max_span = scores.shape
    n_kept = max(int(share * n_tokens), 1)
    order = np.argsort(-scores, axis=None, kind="stable")[: np.isfinite(scores).sum()]
    # Last token of the longest kept span from each token, first token of the longest one to it.
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


def find_texts(words: Ints, starts: Ints, ends: Ints) -> Ints:
    """The same number for spans with the same words, shape (n_spans,)."""
    numbers: dict = {}
    texts = (tuple(words[start:end].tolist()) for start, end in zip(starts, ends))
    return np.array([numbers.setdefault(text, len(numbers)) for text in texts], dtype="int64")


class MentionWords(NamedTuple):
    """Content words of mentions: sparse, shape (n_mentions, n_words); and how many each has."""

    table: Tensor
    n_own: Tensor


def find_words(facts: MentionFacts, starts: Ints, ends: Ints) -> MentionWords:
    """Content words of spans, on the CPU: not every device has sparse products."""
    distinct, numbers = np.unique(facts.words, return_inverse=True)
    words = [np.unique(numbers[s:e][facts.is_content[s:e]]) for s, e in zip(starts, ends)]
    n_own = np.array([len(own) for own in words])
    places = np.stack([np.repeat(np.arange(len(words)), n_own), np.concatenate(words)])
    table = torch.sparse_coo_tensor(
        torch.from_numpy(places),
        torch.ones(places.shape[1], dtype=torch.float32, device="cpu"),
        (len(words), len(distinct)),
        device="cpu",
        # torch warns without this argument.
        check_invariants=True,
    )
    return MentionWords(table.coalesce(), torch.from_numpy(n_own))


def compare_words(own: MentionWords, start: int, end: int) -> Tensor:
    """Which words the mentions from start to end share with each of all: shape (end - start,
    n_mentions), from 0 to `N_KINDS` - 1. Mentions without content words share none."""
    mentions, words = own.table.indices()
    is_row = (mentions >= start) & (mentions < end)
    columns = own.table.values().new_zeros(own.table.shape[1], end - start)
    columns[words[is_row], mentions[is_row] - start] = 1  # (n_words, n_rows)
    n_shared = torch.sparse.mm(own.table, columns).T  # (n_rows, n_mentions)
    has_all_own = n_shared == own.n_own[start:end].unsqueeze(1)
    has_all_other = n_shared == own.n_own
    kinds = 1 + (has_all_own | has_all_other).long() + (has_all_own & has_all_other).long()
    return kinds * (n_shared > 0)
