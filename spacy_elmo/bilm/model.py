"""`BiLM`: distinct words -> all layers of every token."""

from copy import deepcopy
from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .batch import Packing, count_bytes, encode_words, pack, unpack_rows
from .build_lock import BUILD_LOCK
from .char_cnn import CharCNN
from .config import N_WORD_MARKERS, BiLMConfig
from .lstm import BiLMState, LayerState, LSTMStack
from .snapshot import replace_weights
from .weights import check_size
from .word_table import WordTable


class BiLM(nn.Module):
    """A bidirectional language model: word vectors from characters, and two LSTM
    stacks that read each sequence in opposite directions. `BiLM(config)` has random
    weights. Pure: what it returns depends on its arguments and weights alone.

    config (BiLMConfig): its shape.
    n_changes (int): how often weights were loaded, or changed where torch does not count it.
    RAISES (ValueError): EL105 for more than 4 billion weights.

    Source: Peters et al. 2018, sections 3.1 and 3.4.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        check_size(config)
        self.config = config
        self.n_changes = 0
        # Also where a module around this one is what loads.
        self.register_load_state_dict_post_hook(_count_load)
        if config.input == "characters":
            self.char_cnn = CharCNN(config)
        else:
            self.word_table = WordTable(config)
        self.forward_lstm = LSTMStack(config)
        self.backward_lstm = LSTMStack(config)

    @property
    def device(self) -> torch.device:
        """RETURNS (torch.device): Where the weights are."""
        return self._get_weight().device

    def state_dict(self, *args: Any, **kwargs: Any) -> Dict[str, Any]:  # type: ignore[override]
        """As torch's; weights that another thread loads are all in it, or none."""
        with BUILD_LOCK:
            return super().state_dict(*args, **kwargs)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """As torch's, but all at once: whoever computes with the old weights goes on with
        them, and an error or an interrupt leaves them as they were."""
        has_gradients = torch.is_grad_enabled()
        try:
            with BUILD_LOCK:
                if assign:
                    result = super().load_state_dict(state_dict, strict, assign)
                else:
                    other = deepcopy(self)
                    result = nn.Module.load_state_dict(other, state_dict, strict)
                    replace_weights(self, other)
                    self.n_changes += 1
            return result
        except BaseException:
            # torch switches gradients off meanwhile, and an interrupt may leave them so.
            torch.set_grad_enabled(has_gradients)
            raise

    def encode(self, words: Tensor) -> Tensor:
        """Compute word vectors.

        words (Tensor): distinct words, int64: character ids, shape (n_words, n_chars),
            or rows of the word table, shape (n_words,).
        RETURNS (Tensor): shape (n_words, width // 2).
        """
        return self.char_cnn(words) if self.config.input == "characters" else self.word_table(words)

    def forward(
        self,
        words: Tensor,
        word_ids: Tensor,
        lengths: NDArray,
        state: Optional[BiLMState] = None,
    ) -> Tuple[Tensor, BiLMState]:
        """Compute all layers of the tokens of a batch.

        words (Tensor): distinct words, as in `encode`.
        word_ids (Tensor): indices of `words`, shape (sum(lengths),), int64.
        lengths (NDArray): boundaries counted, each at least 3, shape (n_seqs,).
        state (Optional[BiLMState]): before the first word; None for zeros.
        RETURNS (Tuple[Tensor, BiLMState]): layers without the boundaries, shape
            (n_tokens, n_layers, width), and the state after each sequence.
        """
        return self.contextualize(self.encode(words)[word_ids], lengths, state)

    def contextualize(
        self,
        X: Tensor,
        lengths: NDArray,
        state: Optional[BiLMState] = None,
        *,
        keep_state: bool = True,
    ) -> Tuple[Tensor, BiLMState]:
        """Compute all layers from word vectors.

        X (Tensor): word vectors, boundaries in place, shape (sum(lengths), width // 2).
        lengths (NDArray): boundaries counted, each at least 3, shape (n_seqs,).
        state (Optional[BiLMState]): before the first word; None for zeros.
        keep_state (bool): whether the state will be read. If not, the boundary that
            a direction reads last is left out, and the state is the one before it.
        RETURNS (Tuple[Tensor, BiLMState]): as `forward`.
        """
        packing = pack(lengths, read_last=keep_state)
        if state is None:
            state = self.zero_state(len(lengths))
        forward, backward, state = self._read(X, packing, state)
        positions = token_positions(lengths)
        tokens = self._index(positions)
        forward_rows = self._index(unpack_rows(packing.forward, positions))
        backward_rows = self._index(unpack_rows(packing.backward, positions))
        # The word layer is doubled to the common width.
        layers = [X[tokens].repeat(1, 2)]
        layers += [
            torch.cat([F[forward_rows], B[backward_rows]], dim=1) for F, B in zip(forward, backward)
        ]
        return torch.stack(layers, dim=1), state  # (n_tokens, n_layers, width)

    def zero_state(self, n_seqs: int) -> BiLMState:
        """n_seqs (int): number of sequences. RETURNS (BiLMState): all zeros."""
        weight, config = self._get_weight(), self.config
        sizes = config.direction_width, config.cell_width
        return BiLMState(*(weight.new_zeros(config.depth, 2, n_seqs, size) for size in sizes))

    def _get_weight(self) -> Tensor:
        """Any: all have one type and device."""
        return next(self.forward_lstm.parameters())

    def _read(
        self, X: Tensor, packing: Packing, state: BiLMState
    ) -> Tuple[List[Tensor], List[Tensor], BiLMState]:
        order = self._index(packing.order)
        hidden, cell = state.hidden[:, :, order], state.cell[:, :, order]
        outputs: List[List[Tensor]] = []
        lasts: List[List[LayerState]] = []
        readings = (self.forward_lstm, packing.forward), (self.backward_lstm, packing.backward)
        for direction, (lstm, positions) in enumerate(readings):
            before = list(zip(hidden[:, direction], cell[:, direction]))
            Ys, last = lstm(X[self._index(positions)], packing.batch_sizes, before)
            outputs.append(Ys)
            lasts.append(last)
        back = torch.argsort(order)
        after = BiLMState(
            *(
                torch.stack([torch.stack([f[part], b[part]]) for f, b in zip(*lasts)])[:, :, back]
                for part in (0, 1)
            )
        )
        return outputs[0], outputs[1], after

    def _index(self, indices: NDArray) -> Tensor:
        return torch.from_numpy(indices).to(self.device)


def token_positions(lengths: NDArray) -> NDArray:
    """lengths (NDArray): of sequences, boundaries counted, shape (n_seqs,). RETURNS
    (NDArray): flat positions that are not boundaries, shape (n_tokens,)."""
    ends = np.cumsum(lengths)
    is_token = np.ones(int(ends[-1]), dtype=bool)
    is_token[ends - 1] = False
    is_token[ends - lengths] = False
    return np.flatnonzero(is_token)


def _count_load(bilm: BiLM, keys: Any) -> None:
    """What torch calls after it has loaded weights."""
    bilm.n_changes += 1


# Words per pass through the convolutions, so that their memory is bounded.
_CNN_WORDS = 1024


def encode_distinct(bilm: BiLM, words: List[str]) -> Tensor:
    """Compute word vectors.

    bilm (BiLM): the network.
    words (List[str]): distinct words.
    RETURNS (Tensor): shape (n_words, width // 2), in the order of the words.
    """
    inputs, back = make_inputs(bilm, words)
    return torch.cat([bilm.encode(part) for part in inputs])[back]


def make_inputs(
    bilm: BiLM, words: List[str], n_words: int = _CNN_WORDS
) -> Tuple[List[Tensor], Tensor]:
    """Write words as `BiLM.encode` reads them, in parts; the character axis of each part
    is cropped to its words.

    bilm (BiLM): the network.
    words (List[str]): distinct words.
    n_words (int): words of a part.
    RETURNS (Tuple[List[Tensor], Tensor]): the parts, and for each word its row in their
        results put end to end, shape (n_words,).
    """
    config, device = bilm.config, bilm.device
    if config.input != "characters":
        return [bilm.word_table.find(words).to(device)], torch.arange(len(words), device=device)
    n_bytes = np.array([count_bytes(word) for word in words], dtype=np.int64)
    order = np.argsort(n_bytes, kind="stable")
    parts: List[Tensor] = []
    for start in range(0, len(order), n_words):
        rows = order[start : start + n_words]
        # As long as these words need, not as long as the biLM could read.
        n_needed = int(n_bytes[rows[-1]]) + N_WORD_MARKERS + config.widest_filter
        char_ids, _ = encode_words([words[i] for i in rows], min(config.max_chars, n_needed))
        parts.append(torch.from_numpy(char_ids).to(device))
    return parts, torch.from_numpy(np.argsort(order)).to(device)
