"""`InferenceEngine`: a biLM laid out for this processor, without gradients."""

from copy import deepcopy
from functools import partial
from typing import Callable, List, NamedTuple, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..bilm.characters import BOS_WORD, EOS_WORD
from ..bilm.lstm import BiLMState, LayerState
from ..bilm.model import BiLM, token_positions
from ..bilm.packing import pack, unpack_rows
from ..bilm.snapshot import Snapshot
from ..bilm.word_batch import N_BOUNDARIES
from ..bilm.words import make_inputs
from .forking import CACHE_LOCK
from .packed_cnn import PackedCNN
from .stack import InferenceStack
from .threads import run_parallel
from .word_cache import WordCache

# Sequences that one thread reads at once at least: with fewer, products get slower.
_LEAST_ROWS = 32
# Words that one thread encodes at once: below, rows are lost to rounding; above, memory.
_LEAST_WORDS, _MOST_WORDS = 64, 512
_N_DIRECTIONS = 2


class _Group(NamedTuple):
    """Sequences that are read together.

    members (NDArray): indices of the sequences in the batch, shape (n_members,).
    lengths (NDArray): how many words of each are read, shape (n_members,).
    positions (NDArray): these words in the batch, shape (sum(lengths),).
    """

    members: NDArray
    lengths: NDArray
    positions: NDArray


class InferenceEngine:
    """Compute what a `BiLM` computes, up to float noise, as fast as we can: weights packed,
    on a CPU the directions side by side. No gradients are kept, and no setting of the
    calling thread is touched, which an interrupt could leave behind.

    bilm (BiLM): read as float32. Weights that it loads later are not seen, so one engine
        is one biLM, whatever other threads do; of a word table changes in place are.
    precision (str): of the products, "fp32", "bf16", "fp16" or "int8".
    warm (bool): whether sequences start from the stored state instead of zeros.
    word_cache (int): word vectors kept between calls; 0 for none.
    """

    def __init__(
        self,
        bilm: BiLM,
        precision: str = "fp32",
        *,
        warm: bool = False,
        word_cache: int = 0,
    ) -> None:
        self._snapshot = Snapshot(bilm)
        bilm = self._snapshot.freeze(bilm)
        if bilm.initial_cell.dtype != torch.float32:
            bilm = deepcopy(bilm).float()
        self.config = bilm.config
        self.word_cache = WordCache(word_cache)
        self._bilm = bilm
        self._encode: Callable[[Tensor], Tensor] = bilm.encode
        if bilm.config.input == "characters":
            self._encode = PackedCNN(bilm.char_cnn, precision)
        stacks = bilm.forward_lstm, bilm.backward_lstm
        self._stacks = [InferenceStack(stack, precision) for stack in stacks]
        self._starts = self._read_boundaries(warm)

    def is_current(self) -> bool:
        """RETURNS (bool): whether the biLM still has the weights that this was made of, but
        for changes in place."""
        return self._snapshot.is_current()

    def make_layers(self, n_tokens: int) -> Tensor:
        """n_tokens (int): words. RETURNS (Tensor): for `contextualize`, shape (n_tokens,
        n_layers, width), not filled."""
        shape = n_tokens, self.config.n_layers, self.config.width
        return torch.empty(shape, dtype=torch.float32, device=self._bilm.device)

    def find_vectors(self, words: List[str], n_threads: int = 1) -> Tensor:
        """words (List[str]): distinct words. n_threads (int): used at a time on a CPU.
        RETURNS (Tensor): their vectors, computed or from the cache, shape
        (n_words, width // 2)."""
        with CACHE_LOCK:
            found, stored, missing = self.word_cache.get(words)
            if not missing:
                return stored
            new = self.encode([words[i] for i in missing], n_threads)
            self.word_cache.put([words[i] for i in missing], new)
        vectors = new.new_empty(len(words), new.size(1))
        vectors[missing] = new
        if found:
            vectors[found] = stored
        return vectors

    def encode(self, words: List[str], n_threads: int = 1) -> Tensor:
        """As `find_vectors`, without the cache."""
        n_words = -(-len(words) // (2 * n_threads))
        n_words = min(_MOST_WORDS, max(_LEAST_WORDS, n_words))
        parts, back = make_inputs(self._bilm, words, n_words)
        tasks = [partial(self._encode, part) for part in parts]
        return torch.cat(run_parallel(tasks, self._limit(n_threads)))[back]

    def contextualize(
        self,
        vectors: Tensor,
        word_ids: NDArray,
        lengths: NDArray,
        layers: Tensor,
        rows: NDArray,
        *,
        n_threads: int = 1,
    ) -> None:
        """Compute all layers of sequences that do not depend on each other. Their first
        boundary was read once for all, and nothing depends on their last one.

        vectors (Tensor): of the distinct words, shape (n_words, width // 2).
        word_ids (NDArray): of the sequences with their boundaries, shape (sum(lengths),).
        lengths (NDArray): boundaries counted, each at least 3, shape (n_seqs,).
        layers (Tensor): filled, shape (n_rows, n_layers, width).
        rows (NDArray): where each word goes, boundaries left out, shape (n_tokens,).
        n_threads (int): used at a time on a CPU.
        """
        read_ids = word_ids[token_positions(lengths)]

        def read(group: _Group, direction: int) -> None:
            start = [
                (hidden.expand(len(group.members), -1), cell.expand(len(group.members), -1))
                for hidden, cell in self._starts[direction]
            ]
            self._read(group, direction, vectors, read_ids, start, rows, layers)

        self._run(read, lengths - N_BOUNDARIES, n_threads)

    def contextualize_stateful(
        self,
        vectors: Tensor,
        word_ids: NDArray,
        lengths: NDArray,
        state: BiLMState,
        *,
        n_threads: int = 1,
    ) -> Tuple[Tensor, BiLMState]:
        """Compute all layers of sequences that go on from a state.

        vectors, word_ids, lengths, n_threads: as `contextualize`.
        state (BiLMState): before the first boundary of each sequence.
        RETURNS (Tuple[Tensor, BiLMState]): layers without the boundaries, shape
            (n_tokens, n_layers, width), and the state after the last boundary of each
            sequence.
        """
        tokens = token_positions(lengths)
        layers = self.make_layers(len(tokens))
        rows = np.full(len(word_ids), -1)
        rows[tokens] = np.arange(len(tokens))
        state = BiLMState(*(part.detach().float() for part in state))
        after = BiLMState(*(torch.empty_like(part) for part in state))

        def read(group: _Group, direction: int) -> None:
            members = self._index(group.members)
            start = [
                (hidden[direction, members], cell[direction, members])
                for hidden, cell in zip(state.hidden, state.cell)
            ]
            last = self._read(group, direction, vectors, word_ids, start, rows, layers)
            for layer, (hidden, cell) in enumerate(last):
                after.hidden[layer, direction, members] = hidden
                after.cell[layer, direction, members] = cell

        self._run(read, lengths, n_threads)
        return layers, after

    def _read_boundaries(self, warm: bool) -> List[List[LayerState]]:
        """RETURNS (List[List[LayerState]]): for each direction and layer the state after
        the boundary that it reads first, shape (1, ...)."""
        vectors = self.encode([BOS_WORD, EOS_WORD])
        state = self._bilm.warm_state(1) if warm else self._bilm.zero_state(1)
        starts = []
        for direction in range(_N_DIRECTIONS):
            before = list(zip(state.hidden[:, direction], state.cell[:, direction]))
            ids = torch.tensor([direction], device=vectors.device)
            outputs = self._stacks[direction](vectors, ids, [1], before)
            starts.append([last for _, last in outputs])
        return starts

    def _run(self, read: Callable[[_Group, int], None], lengths: NDArray, n_threads: int) -> None:
        n_threads = self._limit(n_threads)
        tasks = [
            partial(read, group, direction)
            for group in _split(lengths, n_threads // _N_DIRECTIONS)
            for direction in range(_N_DIRECTIONS)
        ]
        run_parallel(tasks, n_threads)

    def _limit(self, n_threads: int) -> int:
        # A GPU runs what it is given one after the other.
        return n_threads if self._bilm.device.type == "cpu" else 1

    def _read(
        self,
        group: _Group,
        direction: int,
        vectors: Tensor,
        word_ids: NDArray,
        start: List[LayerState],
        rows: NDArray,
        layers: Tensor,
    ) -> List[LayerState]:
        """Fill one direction's half of `layers` for a group.

        word_ids (NDArray): of all that is read of the batch.
        start (List[LayerState]): of each layer, for the group's members.
        rows (NDArray): where in `layers` each of the word ids goes; -1 for nowhere.
        RETURNS (List[LayerState]): the state of each layer after the last word.
        """
        packing = pack(group.lengths, read_last=True)
        packed = packing.backward if direction else packing.forward
        order = self._index(packing.order)
        before = [(hidden[order], cell[order]) for hidden, cell in start]
        group_rows = rows[group.positions]
        kept = np.flatnonzero(group_rows >= 0)
        to, found = self._index(group_rows[kept]), self._index(unpack_rows(packed, kept))
        width = vectors.size(1)
        mine = layers[:, :, direction * width : (direction + 1) * width]
        # The word layer is doubled to the common width.
        mine[to, 0] = vectors[self._index(word_ids[group.positions[kept]])]
        ids = self._index(word_ids[group.positions[packed]])
        outputs = self._stacks[direction](vectors, ids, packing.batch_sizes, before)
        after: List[LayerState] = []
        back = torch.argsort(order)
        for layer, (Y, (hidden, cell)) in enumerate(outputs):
            mine[to, layer + 1] = Y[found]
            after.append((hidden[back], cell[back]))
        return after

    def _index(self, indices: NDArray) -> Tensor:
        return torch.from_numpy(indices).to(self._bilm.device)


def _split(lengths: NDArray, n_groups: int) -> List[_Group]:
    """Deal sequences out to groups, so that each has some of every length."""
    n_groups = max(1, min(n_groups, len(lengths) // _LEAST_ROWS))
    starts = np.cumsum(lengths) - lengths
    order = np.argsort(-lengths, kind="stable")
    groups: List[_Group] = []
    for i in range(n_groups):
        members = np.sort(order[i::n_groups])
        n = lengths[members]
        within = np.arange(int(n.sum())) - np.repeat(np.cumsum(n) - n, n)
        groups.append(_Group(members, n, np.repeat(starts[members], n) + within))
    return groups
