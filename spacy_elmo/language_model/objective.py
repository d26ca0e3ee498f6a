"""`LanguageModel`: a biLM with its softmax, and the losses that train it."""

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, cast

import torch
from torch import Tensor, nn

from ..bilm.lstm import BiLMState, LayerState
from ..bilm.model import BiLM
from .readings import LMBatch, Reading
from .softmax import SoftmaxModule


class Lesson(NamedTuple):
    """Outputs of a biLM for a batch, which teachers read.

    batch (LMBatch): the words that were read.
    vectors (Tensor): word vectors of the distinct words, shape (n_words, width // 2).
    forward, backward (List[Tensor]): outputs of each LSTM layer in the order of the readings,
        each (n_targets, width // 2).
    """

    batch: LMBatch
    vectors: Tensor
    forward: List[Tensor]
    backward: List[Tensor]


class Teacher(nn.Module):
    """Base class of teachers: further losses of pretraining. The parameters are those of the
    head, which is trained with the biLM and not written to the models of a run."""

    def loss(self, lesson: Lesson) -> Tensor:
        """Compute the loss of a batch, with a gradient for every parameter, also in batches
        without anything to learn.

        lesson (Lesson): outputs of the biLM.
        RETURNS (Tensor): a scalar, float32, summed over both directions. It may not depend on
            how a step is divided among processes.
        """
        raise NotImplementedError

    def describe(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): what must not change when a run is resumed, in JSON types."""
        raise NotImplementedError


class LanguageModel(nn.Module):
    """Predict the next word from those before it, and the previous one from those
    after it. The directions share the word vectors and the softmax, nothing else.

    bilm (BiLM): the network.
    softmax (SoftmaxModule): the softmax of both directions.
    dropout (float): probability of dropping a number of the word vectors and of the output of
        each LSTM layer, in [0, 1).
    teachers (Optional[Mapping[str, Teacher]]): further losses, by name.

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

    def forward(
        self, batch: LMBatch, state: Optional[BiLMState] = None
    ) -> Tuple[Tensor, BiLMState]:
        """Compute the losses of a batch.

        batch (LMBatch): inputs and targets.
        state (Optional[BiLMState]): before the first step; None for zeros.
        RETURNS (Tuple[Tensor, BiLMState]): the training loss in nats, summed over both
            directions, then the loss of each teacher, shape (1 + n_teachers,); and the state
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
        """Compute the inputs of the softmax: the top layer of the forward and of the backward
        direction, each (n_targets, width // 2), in the order of the readings; and the state after
        the batch, detached."""
        lesson, after = self._read_all(batch, state)
        return [lesson.forward[-1], lesson.backward[-1]], after

    def _read_all(self, batch: LMBatch, state: Optional[BiLMState]) -> Tuple[Lesson, BiLMState]:
        if state is None:
            state = self.bilm.zero_state(batch.batch_sizes[0])
        vectors = self.bilm.encode_words(batch.words)
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
        """Run the LSTMs of one direction: outputs of each layer, with dropout on the last, and
        final states."""
        stack = (self.bilm.forward_lstm, self.bilm.backward_lstm)[direction]
        X = vectors[torch.from_numpy(reading.inputs).to(vectors.device)]
        before = list(zip(state.hidden[:, direction], state.cell[:, direction]))
        outputs, last = stack(self.dropout(X), batch_sizes, before, self.dropout)
        return [*outputs[:-1], self.dropout(outputs[-1])], last
