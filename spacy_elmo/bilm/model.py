"""`BiLM`: distinct words -> all layers of every token."""

from typing import Any, List, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .batch import WordBatch, count_bytes, encode_words, pack, token_positions, unpack_rows
from .char_cnn import CharCNN
from .config import N_WORD_MARKERS, BiLMConfig
from .lstm import BiLMState, LSTMStack
from .word_table import WordTable

# Words per pass through the convolutions, which bounds their memory.
_CNN_WORDS = 1024


class BiLM(nn.Module):
    """A bidirectional language model: word vectors from characters, and two LSTM
    stacks that read each sequence in opposite directions. `BiLM(config)` has random
    weights. Pure: results depend on arguments and weights alone.

    config (BiLMConfig): its shape.
    version (int): raised when weights are loaded or updated.

    Source: Peters et al. 2018, sections 3.1 and 3.4.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.config = config
        self.version = 0
        # Also called where a module around this one loads weights.
        self.register_load_state_dict_post_hook(_raise_version)
        if config.input == "characters":
            self.char_cnn = CharCNN(config)
        else:
            self.word_table = WordTable(config)
        self.forward_lstm = LSTMStack(config)
        self.backward_lstm = LSTMStack(config)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self._get_weight().device

    @property
    def dtype(self) -> torch.dtype:
        """Type of the weights."""
        return self._get_weight().dtype

    def make_inputs(
        self, words: List[str], n_words: int = _CNN_WORDS
    ) -> Tuple[List[Tensor], Tensor]:
        """Write distinct words as `encode` reads them, in parts of `n_words` of similar length.
        The character axis of each part is cropped to its words. RETURNS the parts, and for each
        word its row in their concatenated results, shape (n_words,)."""
        config, device = self.config, self.device
        if config.input != "characters":
            return [self.word_table.find(words).to(device)], torch.arange(len(words), device=device)
        n_bytes = np.array([count_bytes(word) for word in words], dtype=np.int64)
        order = np.argsort(n_bytes, kind="stable")
        parts: List[Tensor] = []
        for start in range(0, len(order), n_words):
            rows = order[start : start + n_words]
            n_needed = int(n_bytes[rows[-1]]) + N_WORD_MARKERS + config.widest_filter
            char_ids, _ = encode_words([words[i] for i in rows], min(config.max_chars, n_needed))
            parts.append(torch.from_numpy(char_ids).to(device))
        return parts, torch.from_numpy(np.argsort(order)).to(device)

    def encode(self, words: Tensor) -> Tensor:
        """Compute word vectors, shape (n_words, width // 2), from a part of `make_inputs`:
        character ids, shape (n_words, n_chars), or rows of the word table, shape (n_words,)."""
        return self.char_cnn(words) if self.config.input == "characters" else self.word_table(words)

    def encode_words(self, words: List[str]) -> Tensor:
        """Vectors of distinct words, shape (n_words, width // 2)."""
        parts, order = self.make_inputs(words)
        return torch.cat([self.encode(part) for part in parts])[order]

    def forward(self, batch: WordBatch) -> Tensor:
        """Compute all layers of the tokens of a batch, each sequence, of at least one word, from a
        state of zeros. RETURNS (Tensor): layers without the boundaries, one sequence after the
        other, shape (n_tokens, n_layers, width)."""
        X = self.encode_words(batch.words)[self._index(batch.word_ids)]
        # No token depends on the boundary that a direction reads last.
        packing = pack(batch.lengths, read_last=False)
        positions = token_positions(batch.lengths)
        zero = self.zero_state(len(batch.lengths))
        halves: List[List[Tensor]] = []
        readings = (self.forward_lstm, packing.forward), (self.backward_lstm, packing.backward)
        for direction, (lstm, packed) in enumerate(readings):
            before = list(zip(zero.hidden[:, direction], zero.cell[:, direction]))
            outputs, _ = lstm(X[self._index(packed)], packing.batch_sizes, before)
            rows = self._index(unpack_rows(packed, positions))
            # Each direction has the word vectors as its lowest layer.
            halves.append([X[self._index(positions)], *(Y[rows] for Y in outputs)])
        layers = [torch.cat(pair, dim=1) for pair in zip(*halves)]
        return torch.stack(layers, dim=1)

    def zero_state(self, n_seqs: int) -> BiLMState:
        """The state of a number of sequences, all zeros."""
        weight, config = self._get_weight(), self.config
        sizes = config.direction_width, config.cell_width
        return BiLMState(*(weight.new_zeros(config.depth, 2, n_seqs, size) for size in sizes))

    def _get_weight(self) -> Tensor:
        """Any: all have one type and device."""
        return next(self.forward_lstm.parameters())

    def _index(self, indices: NDArray) -> Tensor:
        return torch.from_numpy(indices).to(self.device)


def _raise_version(bilm: BiLM, keys: Any) -> None:
    bilm.version += 1
