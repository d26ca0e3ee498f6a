"""`InferenceEngine`: a biLM laid out for this processor, without gradients."""

from functools import partial
from typing import Callable, List, NamedTuple, Optional, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .inference_stack import InferenceStack
from .lstm import BiLMState
from .model import BiLM, token_positions
from .packed_cnn import PackedCNN
from .packed_lstm import N_PADDING
from .packing import pack, unpack_rows
from .parallel import run_parallel
from .words import make_inputs

# Sequences that one thread reads at once at least: with fewer, products get slower.
_LEAST_ROWS = 32
# Words that one thread encodes at once: below, rows are lost to rounding; above, memory.
_LEAST_WORDS, _MOST_WORDS = 64, 512
_N_DIRECTIONS = 2


class _Group(NamedTuple):
    """Sequences that are read together.

    members (NDArray): indices of the sequences in the batch, shape (n_members,).
    positions (NDArray): their words in the batch, shape (sum of their lengths,).
    tokens (NDArray): rows of the result for those that are no boundaries.
    lengths (NDArray): their lengths, boundaries counted, shape (n_members,).
    """

    members: NDArray
    positions: NDArray
    tokens: NDArray
    lengths: NDArray


class InferenceEngine:
    """Compute what a `BiLM` computes, up to float noise, as fast as we can: weights packed,
    on a CPU the directions side by side.

    bilm (BiLM): its weights are copied; later changes to them are not seen.
    precision (str): of the products, "fp32", "bf16", "fp16" or "int8".
    n_threads (int): used at a time on a CPU, at least 1.
    """

    def __init__(self, bilm: BiLM, precision: str = "fp32", n_threads: int = 1) -> None:
        self.config = bilm.config
        self.n_threads = n_threads
        self._bilm = bilm
        self._encode: Callable[[Tensor], Tensor] = bilm.encode
        if bilm.config.input == "characters":
            self._encode = PackedCNN(bilm.char_cnn, precision)
        stacks = bilm.forward_lstm, bilm.backward_lstm
        self._stacks = [InferenceStack(stack, precision) for stack in stacks]

    @property
    def _n_tasks(self) -> int:
        """At a time. A GPU runs what it is given one after the other."""
        return self.n_threads if self._bilm.device.type == "cpu" else 1

    def encode(self, words: List[str]) -> Tensor:
        """words (List[str]): distinct words. RETURNS (Tensor): their vectors, shape
        (n_words, width // 2)."""
        n_words = -(-len(words) // (2 * self.n_threads))
        n_words = min(_MOST_WORDS, max(_LEAST_WORDS, n_words))
        parts, back = make_inputs(self._bilm, words, n_words)
        tasks = [partial(self._encode, part) for part in parts]
        return torch.cat(run_parallel(tasks, self._n_tasks))[back]

    def contextualize(
        self,
        X: Tensor,
        lengths: NDArray,
        state: Optional[BiLMState] = None,
        *,
        keep_state: bool = True,
    ) -> Tuple[Tensor, BiLMState]:
        """As `BiLM.contextualize`."""
        state = self._bilm.zero_state(len(lengths)) if state is None else state
        layers = X.new_empty(
            int(lengths.sum()) - 2 * len(lengths), self.config.n_layers, self.config.width
        )
        after = BiLMState(*(torch.empty_like(part) for part in state))
        tasks = [
            partial(self._read, X, group, direction, state, keep_state, layers, after)
            for group in _split(lengths, self._n_tasks // _N_DIRECTIONS)
            for direction in range(_N_DIRECTIONS)
        ]
        run_parallel(tasks, self._n_tasks)
        return layers, after

    def _read(
        self,
        X: Tensor,
        group: _Group,
        direction: int,
        state: BiLMState,
        keep_state: bool,
        layers: Tensor,
        after: BiLMState,
    ) -> None:
        """Fill one direction's half of `layers` and of `after` for a group."""
        packing = pack(group.lengths, read_last=keep_state)
        packed = packing.backward if direction else packing.forward
        rows, tokens, read, members = (
            torch.from_numpy(indices).to(X.device)
            for indices in (
                unpack_rows(packed, token_positions(group.lengths)),
                group.tokens,
                group.positions[packed],
                group.members[packing.order],
            )
        )
        inputs = X.new_zeros(len(packed) + N_PADDING, X.size(1))
        torch.index_select(X, 0, read, out=inputs[: len(packed)])
        width = X.size(1)
        mine = layers[:, :, direction * width : (direction + 1) * width]
        # The word layer is doubled to the common width.
        mine[tokens, 0] = inputs[rows]
        before = [
            (hidden[direction, members], cell[direction, members])
            for hidden, cell in zip(state.hidden, state.cell)
        ]
        outputs = self._stacks[direction](inputs, packing.batch_sizes, before)
        for layer, (Y, (hidden, cell)) in enumerate(outputs):
            mine[tokens, layer + 1] = Y[rows]
            after.hidden[layer, direction, members] = hidden
            after.cell[layer, direction, members] = cell


def _split(lengths: NDArray, n_groups: int) -> List[_Group]:
    """Deal sequences out to groups, so that each has some of every length."""
    n_groups = max(1, min(n_groups, len(lengths) // _LEAST_ROWS))
    ends = np.cumsum(lengths)
    order = np.argsort(-lengths, kind="stable")
    groups: List[_Group] = []
    for i in range(n_groups):
        members = np.sort(order[i::n_groups])
        starts, n = (ends - lengths)[members], lengths[members]
        within = np.arange(int(n.sum())) - np.repeat(np.cumsum(n) - n, n)
        positions = np.repeat(starts, n) + within
        is_token = (within > 0) & (within < np.repeat(n, n) - 1)
        # Two of each sequence before it, and its own first one.
        n_boundaries = np.repeat(2 * members + 1, n)
        groups.append(_Group(members, positions, (positions - n_boundaries)[is_token], n))
    return groups
