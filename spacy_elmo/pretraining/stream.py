"""`BatchStream`: sequences -> the batches of each step, shuffled, resumable at any step.

Sequences are read into buffers. Each buffer has its own seed of shuffling, so that nothing of it
has to be stored: to resume, the buffer is read and shuffled again.
"""

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple, TypeVar

import numpy as np

from ..bilm.batch import plan_batches
from ..language_model.readings import LMBatch, make_lm_batch, make_stream_batches
from ..language_model.vocabulary import Vocabulary
from .config import TrainingSettings, invalid
from .processes import Processes

Item = TypeVar("Item")
# Reads sequences of words from a position on, some at a time, with the position after them.
SequenceReader = Callable[[Dict[str, Any]], Iterator[Tuple[List[List[str]], Dict[str, Any]]]]


class Step(NamedTuple):
    """The share of one process in a step. `n_targets` are predictions of one direction, over all
    processes and pieces; `continues` says that the pieces continue from the last step's state;
    `position` is that of the stream after the step, in JSON types."""

    batches: List[LMBatch]
    n_targets: int
    continues: bool
    position: Dict[str, Any]


class BatchStream:
    """Cut a stream of sequences into steps. The number of processes and pieces does not change
    the steps, only how each is divided. With `state_steps`, a step reads this number of words of
    each row, and rows continue from step to step in the text's order; else whole sequences,
    shuffled.

    buffer_tokens (int): tokens that are shuffled together.
    prefetch (bool): whether the next buffer is read while one is trained on.
    """

    def __init__(
        self,
        read: SequenceReader,
        vocabulary: Vocabulary,
        settings: TrainingSettings,
        processes: Processes,
        *,
        buffer_tokens: int,
        prefetch: bool = False,
    ) -> None:
        self.read = read
        self.vocabulary = vocabulary
        self.settings = settings
        self.buffer_tokens = buffer_tokens
        self.prefetch = prefetch
        self.n_shares = processes.n_ranks * settings.accumulate
        first = processes.rank * settings.accumulate
        self.shares = range(first, first + settings.accumulate)

    def start(self, source: Dict[str, Any]) -> Dict[str, Any]:
        """Make the stream's first position from the reader's."""
        return {"source": source, "buffer": 0, "batch": 0}

    def steps(self, position: Dict[str, Any]) -> Iterator[Step]:
        """Yield the steps from a position on, which `start` or a step gave."""
        number, skip = position["buffer"], position["batch"]
        before = position["source"]
        is_over = Event()
        buffers = self._buffers(before, is_over)
        if self.prefetch:
            buffers = read_ahead(buffers)
        try:
            for sequences, after in buffers:
                make = self._streamed if self.settings.state_steps else self._shuffled
                for i, (batches, n_targets) in enumerate(make(sequences, number, skip), skip):
                    after_step = {"source": before, "buffer": number, "batch": i + 1}
                    continues = self.settings.state_steps > 0 and i > 0
                    yield Step(batches, n_targets, continues, after_step)
                number, skip, before = number + 1, 0, after
        finally:
            # The end of a run does not wait for a buffer that nobody uses.
            is_over.set()

    def _buffers(
        self, position: Dict[str, Any], is_over: Event
    ) -> Iterator[Tuple[List[List[str]], Dict[str, Any]]]:
        buffer: List[List[str]] = []
        texts: Dict[str, str] = {}
        n_tokens = 0
        for sequences, after in self.read(position):
            if is_over.is_set():
                return
            for words in sequences:
                # One string for all occurrences of a word.
                buffer.append([texts.setdefault(word, word) for word in words])
                n_tokens += len(words)
            position = after
            if n_tokens >= self.buffer_tokens:
                yield buffer, position
                buffer, texts, n_tokens = [], {}, 0
        if buffer:
            yield buffer, position

    def _shuffled(
        self, sequences: List[List[str]], number: int, skip: int
    ) -> Iterator[Tuple[List[LMBatch], int]]:
        rng = np.random.default_rng([self.settings.seed, 4, number])
        mixed = [sequences[i] for i in rng.permutation(len(sequences))]
        # A boundary is predicted at one end of each sequence.
        groups = list(plan_batches([len(words) for words in mixed], self.settings.batch_tokens, 1))
        for k in rng.permutation(len(groups))[skip:]:
            group = [mixed[i] for i in groups[k]]
            shares = [group[share :: self.n_shares] for share in self.shares]
            batches = [make_lm_batch(share, self.vocabulary) for share in shares if share]
            yield batches, sum(len(words) + 1 for words in group)

    def _streamed(
        self, sequences: List[List[str]], number: int, skip: int
    ) -> Iterator[Tuple[List[LMBatch], int]]:
        # No row may be empty.
        n_rows = min(len(sequences), self.settings.n_rows)
        if n_rows < self.n_shares:
            found = f"one for each piece (found: {len(sequences)})"
            expected = f"enough for {self.n_shares} sequences, {found}"
            raise invalid("corpus", "buffer_tokens", self.buffer_tokens, expected)
        rows = _split_evenly(sequences, n_rows)
        shares = [rows[share :: self.n_shares] for share in self.shares]
        length = min(sum(len(words) + 1 for words in row) for row in rows)
        n_steps = self.settings.state_steps
        pieces = [
            make_stream_batches(share, n_steps, length, self.vocabulary, skip) for share in shares
        ]
        for batches in zip(*pieces):
            n_targets = len(batches[0].batch_sizes) * n_rows
            yield list(batches), n_targets


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Compute the next item in a thread while the last one is used; errors are raised here."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(next, items, None)
        while (item := future.result()) is not None:
            future = pool.submit(next, items, None)
            yield item


def _split_evenly(sequences: Sequence[List[str]], n_rows: int) -> List[List[List[str]]]:
    """Cut sequences into at most `len(sequences)` rows of equally many predictions (of words and
    ends), with a difference of one or two; the last row may be longer. A sequence that would end
    in the next row is cut in two. Rows are read up to the end of the shortest."""
    n_targets = sum(len(words) + 1 for words in sequences) // n_rows
    rows: List[List[List[str]]] = [[]]
    n_left = n_targets
    for words in sequences:
        # A word and an end are the least that a row can take.
        while len(rows) < n_rows and len(words) + 1 > n_left:
            if n_left > 1:
                rows[-1].append(words[: n_left - 1])
                words = words[n_left - 1 :]
            rows.append([])
            n_left = n_targets
        rows[-1].append(words)
        n_left -= len(words) + 1
    return rows
