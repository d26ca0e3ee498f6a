"""`InferenceEngine`: a biLM laid out for this processor, without gradients."""

from copy import deepcopy
from functools import partial, wraps
from itertools import islice
from typing import (
    Callable,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    ParamSpec,
    Sequence,
    Tuple,
    TypeVar,
    cast,
)

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..bilm.batch import (
    BOS_WORD,
    EOS_WORD,
    N_BOUNDARIES,
    WordBatch,
    pack,
    token_positions,
    unpack_rows,
)
from ..bilm.lstm import BiLMState, LayerState, LSTMLayer, LSTMStack, has_torch_layer
from ..bilm.model import BiLM
from .packed_layers import DTYPES, N_PADDING, PackedCNN, PackedLSTM, TorchLSTM
from .threads import run_parallel
from .word_cache import WordCache, put_rows, take_rows

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
_Layer = Callable[[Tensor, List[int], LayerState], Tuple[Tensor, LayerState]]
# Outputs of a layer for packed rows, and its final state; the word layer has none.
_Output = Tuple[Tensor, Optional[LayerState]]

# Sequences that a thread reads at once at least: with fewer, products get slower.
_LEAST_ROWS = 32
# Words that a thread encodes at once: below, rows are lost to rounding; above, memory.
_LEAST_WORDS, _MOST_WORDS = 64, 256
# Numbers that the gates of a batch's distinct words may take at most.
_MOST_WORD_GATES = 2**24
# Numbers of a layer up to which a batch is planned and its outputs are put in place in the
# calling thread: threads that begin many short operations wait for each other's interpreter.
_FEW_NUMBERS = 2**15
_N_DIRECTIONS = 2


def without_gradients(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Run a function in inference mode and outside of `torch.autocast`, so that what it keeps is
    exact and of use whatever modes the caller has switched on."""

    @wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with torch.inference_mode():
            if not (torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda")):
                return function(*args, **kwargs)
            with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
                return function(*args, **kwargs)

    return call


class _Part(NamedTuple):
    """Sequences of a batch that are read together."""

    members: NDArray  # the sequences, shape (n_members,)
    lengths: NDArray  # words of each that are read, shape (n_members,)
    positions: NDArray  # these words among all that are read, shape (sum(lengths),)


class _Reading(NamedTuple):
    """The words that one direction reads of a part, and where its outputs go."""

    direction: int  # 0 reads forwards, 1 backwards
    members: Tensor  # of the part, the longest first, shape (n_members,)
    batch_sizes: List[int]  # packed rows of each step
    packed_ids: Tensor  # distinct words of the packed rows, shape (n_packed,)
    kept: Tensor  # packed rows whose outputs are wanted, shape (n_kept,)
    rows: Tensor  # where in the layers these go, shape (n_kept,)
    ids: Tensor  # distinct words of these, shape (n_kept,)


class InferenceEngine:
    """Compute the layers of a `BiLM`, up to float noise, as fast as we can: weights packed, on a
    CPU the directions side by side. Immutable, except for its word cache, which keeps the vectors
    of `word_cache` words. Weights are copied as float32, except for a word table."""

    @without_gradients
    def __init__(self, bilm: BiLM, precision: str = "fp32", *, word_cache: int = 0) -> None:
        self.version = bilm.version
        if bilm.dtype != torch.float32:
            bilm = deepcopy(bilm).float()
        self.config = bilm.config
        self.word_cache = WordCache(word_cache)
        self._bilm = bilm
        self._device = bilm.device
        self._encode: Callable[[Tensor], Tensor] = bilm.encode
        if bilm.config.input == "characters":
            self._encode = PackedCNN(bilm.char_cnn, precision)
        stacks = bilm.forward_lstm, bilm.backward_lstm
        self._stacks = [InferenceStack(stack, precision) for stack in stacks]
        self._starts = self._read_boundaries()

    def is_current(self, bilm: BiLM) -> bool:
        """Whether the biLM still has the weights that this was made of."""
        return self.version == bilm.version and self._device == bilm.device

    def find_vectors(self, words: List[str], n_threads: int = 1) -> Tensor:
        """Vectors of distinct words, computed or from the cache, shape (n_words, width // 2)."""
        hits, stored, misses = self.word_cache.get(words)
        if stored is not None and not misses:
            return stored
        # Without a lock: other threads may look words up meanwhile, or compute the same ones.
        new = self.encode([words[i] for i in misses], n_threads)
        self.word_cache.put([words[i] for i in misses], new)
        vectors = new.new_empty(len(words), new.size(1))
        put_rows(vectors, misses, new)
        if stored is not None:
            put_rows(vectors, hits, stored)
        return vectors

    @without_gradients
    def encode(self, words: List[str], n_threads: int = 1) -> Tensor:
        """As `find_vectors`, without the cache."""
        n_words = -(-len(words) // (2 * n_threads))
        n_words = min(_MOST_WORDS, max(_LEAST_WORDS, n_words))
        parts, order = self._bilm.make_inputs(words, n_words)
        tasks = [partial(self._encode, part) for part in parts]
        return take_rows(torch.cat(run_parallel(tasks, self._limit(n_threads))), order)

    @without_gradients
    def contextualize(
        self,
        batch: WordBatch,
        layers: Tensor,
        rows: NDArray,
        state: Optional[BiLMState] = None,
        *,
        n_threads: int = 1,
    ) -> Optional[BiLMState]:
        """Fill `layers`, shape (n_rows, n_layers, width), from the word layer on; those for which
        it has no room are not computed. `rows`, shape (n_tokens,), says where each word goes,
        boundaries left out. RETURNS the state after the last boundary of each sequence, None if
        none was given."""
        vectors = self.find_vectors(batch.words, n_threads)
        positions = token_positions(batch.lengths)
        if state is None:
            # The first boundary was read once for all, and no word depends on the last one.
            word_ids, lengths = batch.word_ids[positions], batch.lengths - N_BOUNDARIES
            self._run(vectors, word_ids, lengths, layers, rows, None, n_threads)
            return None
        all_rows = np.full(len(batch.word_ids), -1)
        all_rows[positions] = rows
        after = BiLMState(*(torch.empty_like(part) for part in state))
        for reading, finals in self._run(
            vectors, batch.word_ids, batch.lengths, layers, all_rows, state, n_threads
        ):
            for layer, (hidden, cell) in enumerate(finals):
                after.hidden[layer, reading.direction, reading.members] = hidden
                after.cell[layer, reading.direction, reading.members] = cell
        return after

    def _read_boundaries(self) -> List[List[LayerState]]:
        """The state after the boundary that is read first, for each direction and layer."""
        vectors = self.encode([BOS_WORD, EOS_WORD])
        zero = self._bilm.zero_state(1)
        starts = []
        for direction, stack in enumerate(self._stacks):
            before = list(zip(zero.hidden[:, direction], zero.cell[:, direction]))
            outputs = stack(vectors, self._index(np.array([direction])), [1], before)
            starts.append([final for _, final in outputs])
        return starts

    def _run(
        self,
        vectors: Tensor,
        word_ids: NDArray,
        lengths: NDArray,
        layers: Tensor,
        rows: NDArray,
        state: Optional[BiLMState],
        n_threads: int,
    ) -> List[Tuple[_Reading, List[LayerState]]]:
        """Fill `layers` from the vectors of distinct words. Each word that is read has an id, and a
        row in the layers, -1 for none. RETURNS the state of each LSTM layer after each reading."""
        n_threads = self._limit(n_threads)
        places = [
            (part, direction)
            for part in _split(lengths, n_threads // _N_DIRECTIONS)
            for direction in range(_N_DIRECTIONS)
        ]

        def start(part: _Part, direction: int) -> Tuple[_Reading, Iterator[_Output]]:
            reading = self._plan(part, direction, word_ids, rows)
            outputs = self._compute(reading, vectors, state)
            return reading, islice(outputs, layers.size(1))

        def read(part: _Part, direction: int) -> Tuple[_Reading, List[LayerState]]:
            reading, outputs = start(part, direction)
            return reading, _fill(reading, outputs, layers)

        if len(word_ids) * vectors.size(1) > _FEW_NUMBERS:
            return run_parallel([partial(read, *place) for place in places], n_threads)
        # Only the loops over time run side by side.
        started = [start(*place) for place in places]
        tasks: List[Callable[[], List[_Output]]] = [partial(list, each) for _, each in started]
        return [
            (reading, _fill(reading, outputs, layers))
            for (reading, _), outputs in zip(started, run_parallel(tasks, n_threads))
        ]

    def _limit(self, n_threads: int) -> int:
        # A GPU runs its kernels one after the other.
        return n_threads if self._device.type == "cpu" else 1

    def _plan(self, part: _Part, direction: int, word_ids: NDArray, rows: NDArray) -> _Reading:
        packing = pack(part.lengths, read_last=True)
        packed = packing.backward if direction else packing.forward  # (n_packed,)
        ids, part_rows = word_ids[part.positions], rows[part.positions]
        wanted = np.flatnonzero(part_rows >= 0)
        return _Reading(
            direction=direction,
            members=self._index(part.members[packing.order]),
            batch_sizes=packing.batch_sizes,
            packed_ids=self._index(ids[packed]),
            kept=self._index(unpack_rows(packed, wanted)),
            rows=self._index(part_rows[wanted]),
            ids=self._index(ids[wanted]),
        )

    def _compute(
        self, reading: _Reading, vectors: Tensor, state: Optional[BiLMState]
    ) -> Iterator[_Output]:
        """YIELDS (_Output): each layer, the word layer first."""
        yield vectors, None
        direction, members = reading.direction, reading.members
        if state is None:
            n = len(members)
            before = [(h.expand(n, -1), c.expand(n, -1)) for h, c in self._starts[direction]]
        else:
            before = [(h[direction, members], c[direction, members]) for h, c in zip(*state)]
        stack = self._stacks[direction]
        yield from stack(vectors, reading.packed_ids, reading.batch_sizes, before)

    def _index(self, indices: NDArray) -> Tensor:
        return torch.from_numpy(indices).to(self._device)


def _fill(reading: _Reading, outputs: Iterable[_Output], layers: Tensor) -> List[LayerState]:
    """Fill one direction's half of `layers` for a part of a batch. RETURNS the final states."""
    finals: List[LayerState] = []
    for layer, (Y, final) in enumerate(outputs):
        width = Y.size(1)
        half = layers[:, layer, reading.direction * width : (reading.direction + 1) * width]
        # The word layer is doubled to the common width.
        chosen = reading.ids if final is None else reading.kept
        put_rows(half, reading.rows, take_rows(Y, chosen))
        if final is not None:
            finals.append(final)
    return finals


def _split(lengths: NDArray, n_parts: int) -> List[_Part]:
    """Deal sequences out to parts, so that each has some of every length."""
    n_parts = max(1, min(n_parts, len(lengths) // _LEAST_ROWS))
    starts = np.cumsum(lengths) - lengths
    order = np.argsort(-lengths, kind="stable")
    parts: List[_Part] = []
    for i in range(n_parts):
        members = np.sort(order[i::n_parts])
        n = lengths[members]
        within = np.arange(int(n.sum())) - np.repeat(np.cumsum(n) - n, n)
        parts.append(_Part(members, n, np.repeat(starts[members], n) + within))
    return parts


class InferenceStack:
    """The same function as `LSTMStack`, without gradients."""

    def __init__(self, stack: LSTMStack, precision: str) -> None:
        self.skip_connections = stack.skip_connections
        layers = [cast(LSTMLayer, layer) for layer in stack.layers]
        dtype = DTYPES.get(precision, torch.float32)
        has_torch = all(has_torch_layer(layer) for layer in layers)
        self.single: Sequence[_Layer] = []
        if layers[0].weight.device.type != "cpu":
            self.layers: Sequence[_Layer] = [
                TorchLSTM(layer, dtype) if has_torch else partial(deepcopy(layer), dtype=dtype)
                for layer in layers
            ]
            return
        self.layers = [PackedLSTM(layer, precision) for layer in layers]
        if precision == "fp32" and has_torch:
            # Faster for one sequence.
            self.single = [TorchLSTM(layer, dtype) for layer in layers]

    def __call__(
        self, vectors: Tensor, ids: Tensor, batch_sizes: List[int], states: Sequence[LayerState]
    ) -> Iterator[Tuple[Tensor, LayerState]]:
        """vectors (Tensor): of distinct words, shape (n_words, width // 2).
        ids (Tensor): of the packed words, shape (n_packed,).
        YIELDS (Tuple[Tensor, LayerState]): of each layer its packed outputs, shape (n_rows,
            width // 2) with at least n_packed rows, and its final state.
        """
        is_single = bool(self.single) and batch_sizes[0] == 1
        first, *others = self.single if is_single else self.layers
        if isinstance(first, PackedLSTM):
            padded = torch.cat([ids, ids.new_zeros(N_PADDING)])
            if _are_repeated(vectors, ids, first.cell_width):
                X, final = first(vectors, batch_sizes, states[0], padded)
            else:
                X, final = first(take_rows(vectors, padded), batch_sizes, states[0])
        else:
            X, final = first(take_rows(vectors, ids), batch_sizes, states[0])
        yield X, final
        for layer, state in zip(others, states[1:]):
            Y, final = layer(X, batch_sizes, state)
            X = Y.add_(X) if self.skip_connections else Y
            yield X, final


def _are_repeated(vectors: Tensor, ids: Tensor, cell_width: int) -> bool:
    """Whether it pays to compute gates for each distinct word."""
    n_words = len(vectors)
    return 1.5 * n_words < len(ids) and n_words * 4 * cell_width <= _MOST_WORD_GATES
