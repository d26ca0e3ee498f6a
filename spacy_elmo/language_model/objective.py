"""`LanguageModel`: a biLM with its softmax, and the losses that train it."""

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, cast

import torch
from torch import Tensor, nn

from ..bilm.lstm import BiLMState, LayerState
from ..bilm.model import BiLM, encode_distinct
from .readings import LMBatch, Reading
from .softmax import SoftmaxModule


class Lesson(NamedTuple):
    """What a biLM made of a batch.

    batch (LMBatch): what it read.
    vectors (Tensor): of the batch's distinct words, shape (n_words, width // 2).
    forward, backward (List[Tensor]): outputs of each LSTM layer in the order of the readings,
        each (n_targets, width // 2).
    """

    batch: LMBatch
    vectors: Tensor
    forward: List[Tensor]
    backward: List[Tensor]


class Teacher(nn.Module):
    """What every teacher can do. Its parameters are the head's."""

    def loss(self, lesson: Lesson) -> Tensor:
        """lesson (Lesson): what the biLM made. RETURNS (Tensor): a scalar, in float32,
        summed over what both directions read, as the loss of the language model is: so
        it does not matter how a step is shared out. It has a gradient for every
        parameter, also where there is nothing to learn."""
        raise NotImplementedError

    def describe(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): what has to be the same when a run is resumed, in JSON's
        types."""
        raise NotImplementedError


class LanguageModel(nn.Module):
    """Predict the next word from those before it, and the previous one from those
    after it. The directions share the word vectors and the softmax, nothing else.

    bilm (BiLM): the network.
    softmax (SoftmaxModule): what both directions predict with.
    dropout (float): chance that a number is dropped: of the word vectors, and of each
        LSTM layer's output; between 0 and 1.
    teachers (Optional[Mapping[str, Teacher]]): what else the biLM learns from, by name.

    Source: Peters et al. 2018, section 3.1; dropout as bilm-tf `training.py`.
    """

    def __init__(
        self,
        bilm: BiLM,
        softmax: SoftmaxModule,
        dropout: float = 0.0,
        teachers: Optional[Mapping[str, Teacher]] = None,
    ) -> None:
        super().__init__()
        self.bilm = bilm
        self.softmax = softmax
        self.teachers = nn.ModuleDict(teachers or {})
        self.dropout = nn.Dropout(dropout)

    def train_lstms_alone(self) -> None:
        """Leave the word encoder and the softmax as they are: no gradient is computed for
        them."""
        self.requires_grad_(False)
        for trained in (self.bilm.forward_lstm, self.bilm.backward_lstm, self.teachers):
            trained.requires_grad_(True)

    def forward(
        self, batch: LMBatch, state: Optional[BiLMState] = None
    ) -> Tuple[Tensor, BiLMState]:
        """Compute the losses of a batch.

        batch (LMBatch): what to read and to predict.
        state (Optional[BiLMState]): before the first step; None for zeros.
        RETURNS (Tuple[Tensor, BiLMState]): the training loss in nats, summed over both
            directions, and that of each teacher, shape (1 + n_teachers,); and the state
            after the batch, detached.
        """
        lesson, after = self._read_all(batch, state)
        readings = (batch.forward, batch.backward)
        device = self.bilm.device
        hidden = torch.cat([lesson.forward[-1], lesson.backward[-1]])
        targets = torch.cat([torch.from_numpy(r.targets) for r in readings]).to(device)
        losses = [self.softmax.loss(hidden, targets)]
        losses += [cast(Teacher, teacher).loss(lesson) for teacher in self.teachers.values()]
        return torch.stack(losses), after

    def read(
        self, batch: LMBatch, state: Optional[BiLMState] = None
    ) -> Tuple[List[Tensor], BiLMState]:
        """Compute what the softmax reads.

        batch (LMBatch): what to read.
        state (Optional[BiLMState]): before the first step; None for zeros.
        RETURNS (Tuple[List[Tensor], BiLMState]): the top layer of the forward and of the
            backward direction, each (n_targets, width // 2), in the order of the
            readings; and the state after the batch, detached.
        """
        lesson, after = self._read_all(batch, state)
        return [lesson.forward[-1], lesson.backward[-1]], after

    def _read_all(self, batch: LMBatch, state: Optional[BiLMState]) -> Tuple[Lesson, BiLMState]:
        if state is None:
            state = self.bilm.zero_state(batch.batch_sizes[0])
        vectors = encode_distinct(self.bilm, batch.words)
        forward, f_last = self._read(batch.forward, vectors, batch.batch_sizes, state, 0)
        backward, b_last = self._read(batch.backward, vectors, batch.batch_sizes, state, 1)
        parts = [
            torch.stack([torch.stack([f[part], b[part]]) for f, b in zip(f_last, b_last)]).detach()
            for part in (0, 1)
        ]
        return Lesson(batch, vectors, forward, backward), BiLMState(*parts)

    def _read(
        self,
        reading: Reading,
        vectors: Tensor,
        batch_sizes: List[int],
        state: BiLMState,
        direction: int,
    ) -> Tuple[List[Tensor], List[LayerState]]:
        """RETURNS (Tuple[List[Tensor], List[LayerState]]): outputs of each layer, its last
        with dropout; and the last states."""
        stack = (self.bilm.forward_lstm, self.bilm.backward_lstm)[direction]
        X = vectors[torch.from_numpy(reading.inputs).to(vectors.device)]
        before = list(zip(state.hidden[:, direction], state.cell[:, direction]))
        outputs, last = stack(self.dropout(X), batch_sizes, before, self.dropout)
        return [*outputs[:-1], self.dropout(outputs[-1])], last
