"""`InferenceEngine`: a biLM laid out for this processor, without gradients."""

from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Callable, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..bilm.batch import BOS_WORD, EOS_WORD, N_BOUNDARIES, WordBatch, pack, unpack_rows
from ..bilm.lstm import BiLMState, LayerState, LSTMLayer, LSTMStack, has_torch_layer
from ..bilm.model import BiLM, make_inputs, token_positions
from ..bilm.snapshot import Snapshot
from .packed_layers import DTYPES, N_PADDING, PackedCNN, PackedLayer
from .threads import run_parallel
from .torch_lstm import FusedLayer, SingleLayer, SteppedLayer
from .word_cache import WordCache, put_rows, take_rows

_Layer = Callable[[Tensor, List[int], LayerState], Tuple[Tensor, LayerState]]

# Numbers that the gates of a batch's distinct words may take at most.
_MOST_WORD_GATES = 2**24


class InferenceStack:
    """The same function as `LSTMStack`, without gradients.

    stack (LSTMStack): its weights are copied.
    precision (str): of the products.
    """

    def __init__(self, stack: LSTMStack, precision: str) -> None:
        self.skip_connections = stack.skip_connections
        layers = [cast(LSTMLayer, layer) for layer in stack.layers]
        self.layers = [_make_layer(layer, precision) for layer in layers]
        # For one sequence: faster, and the same but for the order of summation.
        self.single: Sequence[_Layer] = []
        if precision == "fp32" and all(_is_plain(layer) for layer in layers):
            self.single = [SingleLayer(layer) for layer in layers]

    def __call__(
        self, vectors: Tensor, ids: Tensor, batch_sizes: List[int], states: Sequence[LayerState]
    ) -> Iterator[Tuple[Tensor, LayerState]]:
        """vectors (Tensor): of distinct words, shape (n_words, width // 2).
        ids (Tensor): of the packed words, shape (sum(batch_sizes),).
        batch_sizes (List[int]): rows of each step, never growing.
        states (Sequence[LayerState]): one for each layer, longest sequence first.
        YIELDS (Tuple[Tensor, LayerState]): of each layer, its packed outputs, shape
            (sum(batch_sizes) + N_PADDING, width // 2), of one sequence perhaps without these
            last rows, and its last state.
        """
        is_single = bool(self.single) and batch_sizes[0] == 1
        first, *others = self.single if is_single else self.layers
        if isinstance(first, PackedLayer) and _are_repeated(vectors, ids, first.cell_width):
            X, last = first.read_words(vectors, ids, batch_sizes, states[0])
        else:
            X = vectors[ids]
            if not is_single:
                X = torch.cat([X, X.new_zeros(N_PADDING, X.size(1))])
            X, last = first(X, batch_sizes, states[0])
        yield X, last
        for layer, state in zip(others, states[1:]):
            Y, last = layer(X, batch_sizes, state)
            X = Y.add_(X) if self.skip_connections else Y
            yield X, last


def _are_repeated(vectors: Tensor, ids: Tensor, cell_width: int) -> bool:
    """Whether it pays to compute gates for each distinct word."""
    n_words = len(vectors)
    return 1.5 * n_words < len(ids) and n_words * 4 * cell_width <= _MOST_WORD_GATES


def _make_layer(layer: LSTMLayer, precision: str) -> _Layer:
    if layer.weight.device.type == "cpu":
        return PackedLayer(layer, precision)
    is_plain = has_torch_layer(layer.projection, (layer.cell_clip, layer.proj_clip))
    make = FusedLayer if is_plain else SteppedLayer
    return make(layer, DTYPES[precision])


def _is_plain(layer: LSTMLayer) -> bool:
    """Whether it is on a CPU, and torch's own LSTM can be the same: that sees a projection by other
    widths of output and cells."""
    clips = layer.cell_clip is not None or layer.proj_clip is not None
    is_seen = layer.projection is None or layer.weight.size(0) // 2 != layer.cell_width
    return layer.weight.device.type == "cpu" and not clips and is_seen


# Sequences that one thread reads at once at least: with fewer, products get slower.
_LEAST_ROWS = 32
# Words that one thread encodes at once: below, rows are lost to rounding; above, memory.
_LEAST_WORDS, _MOST_WORDS = 64, 512
_N_DIRECTIONS = 2
# Numbers of a layer up to which a batch is planned, and its outputs are put in place, in the
# calling thread: torch does so much with one thread.
_FEW_NUMBERS = 2**15


class _Part(NamedTuple):
    """Sequences of a batch that are read together.

    members (NDArray): the sequences, shape (n_members,).
    lengths (NDArray): how many words of each are read, shape (n_members,).
    positions (NDArray): these words among all that are read of the batch, shape
        (sum(lengths),).
    """

    members: NDArray
    lengths: NDArray
    positions: NDArray


@dataclass(frozen=True)
class _Reading:
    """What one direction reads of a part, and where its outputs go.

    direction (int): 0 reads forwards, 1 backwards.
    members (Tensor): of the part, the longest first, shape (n_members,).
    batch_sizes (List[int]): packed rows of each step.
    packed_ids (Tensor): distinct words of the packed rows, shape (n_packed,).
    kept (Tensor): packed rows whose outputs are wanted, shape (n_kept,).
    rows (Tensor): where in the layers these go, shape (n_kept,).
    ids (Tensor): distinct words of these, shape (n_kept,).
    """

    direction: int
    members: Tensor
    batch_sizes: List[int]
    packed_ids: Tensor
    kept: Tensor
    rows: Tensor
    ids: Tensor


_Planned = Tuple[_Reading, List[LayerState]]
# What a layer says of packed rows, and its state after the last.
_Output = Tuple[Tensor, Optional[LayerState]]


class InferenceEngine:
    """Compute what a `BiLM` computes, up to float noise, as fast as we can: weights packed,
    on a CPU the directions side by side. No gradients are kept, and no setting of the
    calling thread is touched, which an interrupt could leave behind.

    bilm (BiLM): read as float32. Weights that it loads later are not seen, so one engine
        is one biLM, whatever other threads do; of a word table changes in place are.
    precision (str): of the products, "fp32", "bf16", "fp16" or "int8".
    word_cache (int): word vectors kept between calls; 0 for none.
    """

    def __init__(
        self,
        bilm: BiLM,
        precision: str = "fp32",
        *,
        word_cache: int = 0,
    ) -> None:
        self._snapshot = Snapshot(bilm)
        bilm = self._snapshot.freeze(bilm)
        if next(bilm.parameters()).dtype != torch.float32:
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
        """bilm (BiLM): any. RETURNS (bool): whether it is the one that this was made of, and has
        the weights of then."""
        return self._snapshot.is_current(bilm)

    def find_vectors(self, words: List[str], n_threads: int = 1) -> Tensor:
        """words (List[str]): distinct words. n_threads (int): used at a time on a CPU.
        RETURNS (Tensor): their vectors, computed or from the cache, shape
        (n_words, width // 2)."""
        hits, stored, misses = self.word_cache.get(words)
        if not misses:
            return stored
        # Without a lock: other threads may look words up meanwhile, or compute the same ones.
        new = self.encode([words[i] for i in misses], n_threads)
        self.word_cache.put([words[i] for i in misses], new)
        vectors = new.new_empty(len(words), new.size(1))
        put_rows(vectors, misses, new)
        if hits:
            put_rows(vectors, hits, stored)
        return vectors

    def encode(self, words: List[str], n_threads: int = 1) -> Tensor:
        """As `find_vectors`, without the cache."""
        n_words = -(-len(words) // (2 * n_threads))
        n_words = min(_MOST_WORDS, max(_LEAST_WORDS, n_words))
        parts, back = make_inputs(self._bilm, words, n_words)
        tasks = [partial(self._encode, part) for part in parts]
        return take_rows(torch.cat(run_parallel(tasks, self._limit(n_threads))), back)

    def contextualize(
        self, batch: WordBatch, layers: Tensor, rows: NDArray, *, n_threads: int = 1
    ) -> None:
        """Compute layers of sequences that do not depend on each other. Their first
        boundary was read once for all, and nothing depends on their last one.

        batch (WordBatch): each sequence with at least one word.
        layers (Tensor): filled, shape (n_rows, n_layers, width): as many as it has room for,
            from the word layer on. Those above are not computed.
        rows (NDArray): where each word goes, boundaries left out, shape (n_tokens,).
        n_threads (int): used at a time on a CPU.
        """
        vectors = self.find_vectors(batch.words, n_threads)
        word_ids = batch.word_ids[token_positions(batch.lengths)]

        def plan(part: _Part, direction: int) -> _Planned:
            n = len(part.members)
            before = [(h.expand(n, -1), c.expand(n, -1)) for h, c in self._starts[direction]]
            return self._plan(part, direction, word_ids, rows), before

        self._run(plan, vectors, layers, batch.lengths - N_BOUNDARIES, n_threads)

    def contextualize_stateful(
        self, batch: WordBatch, state: BiLMState, *, n_threads: int = 1
    ) -> Tuple[Tensor, BiLMState]:
        """Compute all layers of sequences that continue from a state.

        batch (WordBatch): each sequence with at least one word.
        state (BiLMState): before the first boundary of each sequence.
        n_threads (int): used at a time on a CPU.
        RETURNS (Tuple[Tensor, BiLMState]): layers without the boundaries, shape
            (n_tokens, n_layers, width), and the state after the last boundary of each
            sequence.
        """
        vectors = self.find_vectors(batch.words, n_threads)
        positions = token_positions(batch.lengths)
        shape = len(positions), self.config.n_layers, self.config.width
        layers = torch.empty(shape, dtype=torch.float32, device=self._device)
        rows = np.full(len(batch.word_ids), -1)
        rows[positions] = np.arange(len(positions))
        state = BiLMState(*(tensor.detach().float() for tensor in state))
        after = BiLMState(*(torch.empty_like(tensor) for tensor in state))

        def plan(part: _Part, direction: int) -> _Planned:
            reading = self._plan(part, direction, batch.word_ids, rows)
            before = [
                (h[direction, reading.members], c[direction, reading.members])
                for h, c in zip(*state)
            ]
            return reading, before

        for reading, lasts in self._run(plan, vectors, layers, batch.lengths, n_threads):
            for layer, (hidden, cell) in enumerate(lasts):
                after.hidden[layer, reading.direction, reading.members] = hidden
                after.cell[layer, reading.direction, reading.members] = cell
        return layers, after

    def _read_boundaries(self) -> List[List[LayerState]]:
        """RETURNS (List[List[LayerState]]): for each direction and layer the state after
        the boundary that it reads first, shape (1, ...)."""
        vectors = self.encode([BOS_WORD, EOS_WORD])
        zero = self._bilm.zero_state(1)
        starts = []
        for direction in range(_N_DIRECTIONS):
            before = list(zip(zero.hidden[:, direction], zero.cell[:, direction]))
            ids = torch.tensor([direction], device=vectors.device)
            outputs = self._stacks[direction](vectors, ids, [1], before)
            starts.append([last for _, last in outputs])
        return starts

    def _run(
        self,
        plan: Callable[[_Part, int], _Planned],
        vectors: Tensor,
        layers: Tensor,
        lengths: NDArray,
        n_threads: int,
    ) -> List[Tuple[_Reading, List[LayerState]]]:
        """plan (Callable[[_Part, int], _Planned]): what a direction reads of a part, and from
            which states.
        vectors, layers (Tensor): see `_fill`. lengths (NDArray): of all sequences.
        RETURNS (List[Tuple[_Reading, List[LayerState]]]): what was read, and the state of each
            layer after it."""
        n_threads = self._limit(n_threads)
        places = [
            (part, direction)
            for part in _split(lengths, n_threads // _N_DIRECTIONS)
            for direction in range(_N_DIRECTIONS)
        ]

        def compute(reading: _Reading, before: List[LayerState]) -> Iterator[_Output]:
            return islice(self._compute(reading, before, vectors), layers.size(1))

        def read(place: Tuple[_Part, int]) -> Tuple[_Reading, List[LayerState]]:
            reading, before = plan(*place)
            return reading, self._fill(reading, compute(reading, before), layers)

        if int(lengths.sum()) * vectors.size(1) > _FEW_NUMBERS:
            return run_parallel([partial(read, place) for place in places], n_threads)
        # Threads that begin many short operations wait for each other's interpreter: of few words,
        # the loops over time alone run side by side.
        planned = [plan(*place) for place in places]
        tasks: List[Callable[[], List[_Output]]] = [
            partial(list, compute(*each)) for each in planned
        ]
        outputs = run_parallel(tasks, n_threads)
        return [
            (reading, self._fill(reading, output, layers))
            for (reading, _), output in zip(planned, outputs)
        ]

    def _limit(self, n_threads: int) -> int:
        # A GPU runs what it is given one after the other.
        return n_threads if self._device.type == "cpu" else 1

    def _plan(self, part: _Part, direction: int, word_ids: NDArray, rows: NDArray) -> _Reading:
        """word_ids (NDArray): of all that is read of the batch. rows (NDArray): where in the
        layers each of these words goes; -1 for nowhere."""
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
        self, reading: _Reading, before: List[LayerState], vectors: Tensor
    ) -> Iterator[_Output]:
        """before (List[LayerState]): of each layer, for `members`. vectors (Tensor): of the
        distinct words, shape (n_words, width // 2). YIELDS (_Output): of each layer: the words'
        own first, without a state."""
        yield vectors, None
        stack = self._stacks[reading.direction]
        yield from stack(vectors, reading.packed_ids, reading.batch_sizes, before)

    def _fill(
        self, reading: _Reading, outputs: Iterable[_Output], layers: Tensor
    ) -> List[LayerState]:
        """Fill one direction's half of `layers` for a part of a batch.

        outputs (Iterable[_Output]): of `_compute`.
        layers (Tensor): shape (n_rows, n_layers, width).
        RETURNS (List[LayerState]): of each layer after the last word, for `members`.
        """
        lasts: List[LayerState] = []
        for layer, (Y, last) in enumerate(outputs):
            width = Y.size(1)
            half = layers[:, layer, reading.direction * width : (reading.direction + 1) * width]
            # The word layer is doubled to the common width.
            chosen = reading.ids if last is None else reading.kept
            put_rows(half, reading.rows, take_rows(Y, chosen))
            if last is not None:
                lasts.append(last)
        return lasts

    def _index(self, indices: NDArray) -> Tensor:
        return torch.from_numpy(indices).to(self._device)


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
