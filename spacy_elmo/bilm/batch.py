"""Words -> character ids; sequences of words -> batches, and their layout in time."""

from dataclasses import dataclass
from typing import Dict, Iterable, Iterator, List, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

BOS_WORD = "<S>"
EOS_WORD = "</S>"
N_BOUNDARIES = 2
N_CHARACTERS = 261  # rows of the character table

# As AllenNLP and bilm-tf number them (bilm-tf `data.py`, UnicodeCharsVocabulary): 0-255 are UTF-8
# bytes. Their readers' "+1, 0 means no token" is not needed: no row stands for no token.
_BOUNDARIES = {BOS_WORD: [256], EOS_WORD: [257]}
_BOW, _EOW, PADDING = 258, 259, 260


def encode_words(words: Sequence[str], max_chars: int) -> Tuple[NDArray, NDArray]:
    """Write words as rows of character ids: begin of word, UTF-8 bytes (what cannot be encoded
    left out, the rest cut to fit), end of word, padding. The literal words "<S>" and "</S>" are the
    sentence boundaries. RETURNS the ids, shape (n_words, max_chars), int64, and the used positions
    of each row, shape (n_words,), int64; both with markers."""
    ids = np.full((len(words), max_chars), PADDING, dtype=np.int64)
    lengths = np.empty(len(words), dtype=np.int64)
    ids[:, 0] = _BOW
    for row, word in enumerate(words):
        units = _BOUNDARIES.get(word) or list(_encode_utf8(word)[: max_chars - 2])
        ids[row, 1 : len(units) + 1] = units
        ids[row, len(units) + 1] = _EOW
        lengths[row] = len(units) + 2
    return ids, lengths


def _encode_utf8(word: str) -> bytes:
    # A lone surrogate has no encoding; AllenNLP drops it too.
    return word.encode("utf-8", "ignore")


def count_bytes(word: str) -> int:
    """Character positions of a word without its markers."""
    return len(_encode_utf8(word))


def count_truncated(words: Iterable[str], max_chars: int) -> int:
    """Count the words whose bytes do not fit into `max_chars` positions with markers."""
    max_bytes = max_chars - 2
    # No character has more than 4 bytes: most words need not be encoded.
    return sum(4 * len(word) > max_bytes and count_bytes(word) > max_bytes for word in words)


@dataclass(frozen=True)
class WordBatch:
    """Sequences as the biLM reads them, one after the other, each between its two boundaries."""

    words: List[str]  # distinct; 0 is the begin, 1 the end of a sequence
    word_ids: NDArray  # indices into `words`, shape (sum(lengths),), int64
    lengths: NDArray  # of each sequence, boundaries counted, shape (n_seqs,), int64


def make_batch(sequences: Sequence[Sequence[str]]) -> WordBatch:
    """Collect the distinct words of sequences, each with at least one, and put boundaries around
    each sequence."""
    index: Dict[str, int] = {BOS_WORD: 0, EOS_WORD: 1}
    word_ids: List[int] = []
    for words in sequences:
        word_ids.append(0)
        word_ids.extend([index.setdefault(word, len(index)) for word in words])
        word_ids.append(1)
    lengths = [len(words) + N_BOUNDARIES for words in sequences]
    return WordBatch(
        list(index), np.array(word_ids, dtype=np.int64), np.array(lengths, dtype=np.int64)
    )


def plan_batches(
    lengths: Sequence[int], batch_tokens: int, n_boundaries: int = N_BOUNDARIES
) -> Iterator[List[int]]:
    """Group sequences of similar length, longest first, within a budget of tokens, `n_boundaries`
    of each sequence included. Empty ones are left out; a longer one is a group by itself. YIELDS
    the indices of a group."""
    group: List[int] = []
    n_tokens = 0
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if lengths[i] == 0:
            break
        size = lengths[i] + n_boundaries
        if group and n_tokens + size > batch_tokens:
            yield group
            group, n_tokens = [], 0
        group.append(i)
        n_tokens += size
    if group:
        yield group


def token_positions(lengths: NDArray) -> NDArray:
    """Flat positions that are not boundaries, shape (n_tokens,), of sequences whose lengths count
    their boundaries."""
    ends = np.cumsum(lengths)
    is_token = np.ones(int(ends[-1]), dtype=bool)
    is_token[ends - 1] = False
    is_token[ends - lengths] = False
    return np.flatnonzero(is_token)


@dataclass(frozen=True)
class Packing:
    """Order the steps of sequences by time, longest sequence first, so that the rows
    still running at a step are one block that shrinks: no padded work. The backward direction
    starts at the end of each sequence."""

    order: NDArray  # sequences from the longest to the shortest, shape (n_seqs,)
    batch_sizes: List[int]  # sequences that run at each step, never growing
    forward: NDArray  # flat position read at each packed row, shape (sum(batch_sizes),)
    backward: NDArray  # the same for the backward direction


def pack(lengths: NDArray, *, read_last: bool) -> Packing:
    """Lay out sequences that follow each other in a flat array; lengths count the boundaries, shape
    (n_seqs,). With `read_last` a direction also reads its last boundary: only the state after it
    depends on it, no token does."""
    starts = np.cumsum(lengths) - lengths
    order = np.argsort(-lengths, kind="stable")
    starts, ends = starts[order], (starts + lengths)[order] - 1
    n_steps = lengths[order] - (0 if read_last else 1)  # (n_seqs,), never growing
    # Sequences of at least 1, 2, ... steps.
    sizes = len(n_steps) - np.searchsorted(n_steps[::-1], np.arange(n_steps[0]), side="right")
    steps = np.repeat(np.arange(n_steps[0]), sizes)  # (n_rows,)
    ranks = np.arange(len(steps)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return Packing(
        order=order,
        batch_sizes=sizes.tolist(),
        forward=starts[ranks] + steps,
        backward=ends[ranks] - steps,
    )


def unpack_rows(packed: NDArray, positions: NDArray) -> NDArray:
    """Find the row in `packed`, `Packing.forward` or `Packing.backward`, of flat positions."""
    rows = np.empty(int(packed.max()) + 1, dtype=np.int64)
    rows[packed] = np.arange(len(packed))
    return rows[positions]
