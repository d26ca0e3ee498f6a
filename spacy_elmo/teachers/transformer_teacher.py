"""`TransformerTeacher`: a layer of the biLM learns what a layer of a transformer says of a token
in its sequence."""

import warnings
from typing import Any, Dict, List, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..errors import Errors, Warnings
from ..language_model.readings import LMBatch
from ..language_model.teacher import Lesson, Teacher, TeacherContext, require_number
from ..language_model.vocabulary import SPECIAL_WORDS
from .transformer_encoder import TransformerEncoder, load_encoder

KIND = "transformer"
# Words that tell how far each number of the transformer's layer varies.
_SCALE_WORDS = 4096
_SCALE_LENGTH = 32
# Of these words: who knows fewer has learned from another kind of text.
_FEW = 0.5


class TransformerTeacher(Teacher):
    """Predict a transformer's vector of a token, the mean over its pieces, from both directions
    of a layer, through a linear head. The loss of a token is the mean squared error, each
    number of the vector scaled to vary by about 1: so it is near the share of the variance
    that is not explained.

    context (TeacherContext): what it is made for.
    path (str): folder of a Hugging Face encoder with its fast tokenizer and safetensors.
    layer (int): of the transformer, the first is 1; those above are not computed.
    student_layer (int): LSTM layer of the biLM, the first is 1.
    weight (float): of this loss beside the language model's.
    share (float): of the sequences that are taught, drawn anew for each step; the transformer
        reads no others. Their loss is scaled up.
    RAISES (ValueError): EL181 for a wrong setting, EL183 and EL184 if the transformer cannot
        be read, EL185 if the biLM does not read whole sequences.
    """

    def __init__(
        self,
        context: TeacherContext,
        *,
        path: str = "",
        layer: int = 2,
        student_layer: int = 1,
        weight: float = 1.0,
        share: float = 0.25,
    ) -> None:
        super().__init__()
        require_number(KIND, "weight", weight)
        require_number(KIND, "share", share, most=1)
        depth = context.shape.depth
        require_number(KIND, "student_layer", student_layer, most=depth, whole=True)
        if context.state_steps:
            raise ValueError(Errors.EL185.format(kind=KIND, state_steps=context.state_steps))
        self.weight, self.share, self.student_layer = weight, share, student_layer
        self.encoder = load_encoder(KIND, path, layer)
        self.scale = _measure_scale(self.encoder, context.vocabulary.words[len(SPECIAL_WORDS) :])
        self.head = nn.Linear(context.shape.width, self.encoder.width)

    def loss(self, lesson: Lesson) -> Tensor:
        """See `Teacher.loss`. Draws from torch's global generator."""
        forward, backward = (side[self.student_layer - 1] for side in lesson[2:])
        drawn = torch.rand(lesson.batch.batch_sizes[0]) < self.share
        tokens = align_tokens(lesson.batch, np.flatnonzero(drawn.numpy()))
        targets, known = self.encoder.read(tokens.sequences, forward.device)
        rows = (torch.from_numpy(part[known]).to(forward.device) for part in tokens[1:])
        pairs = zip((forward, backward), rows)
        X = torch.cat([side[row] for side, row in pairs], dim=1)  # (n_known, width)
        with torch.autocast(forward.device.type, enabled=False):
            guesses = self.head(X.to(self.head.weight.dtype))
            errors = guesses - targets.to(guesses) / self.scale.to(guesses)
            # Each token is read twice, by either direction.
            factor = 2 * self.weight / (self.share * self.encoder.width)
            return factor * errors.square().sum()

    def describe(self) -> Dict[str, Any]:
        """See `Teacher.describe`."""
        return {
            "weight": self.weight,
            "share": self.share,
            "student_layer": self.student_layer,
            **self.encoder.describe(),
        }


class Tokens(NamedTuple):
    """Sequences of a batch, and where each of their tokens was read.

    sequences (List[List[str]]): words.
    forward, backward (NDArray): row of the readings for each token, one sequence after the
        other, int64, shape (n_tokens,).
    """

    sequences: List[List[str]]
    forward: NDArray
    backward: NDArray


def align_tokens(batch: LMBatch, members: NDArray) -> Tokens:
    """Find the tokens of sequences in what both directions read.

    batch (LMBatch): of whole sequences.
    members (NDArray): sequences, the longest is 0, int64.
    RETURNS (Tokens): their words and rows.
    """
    sizes = np.asarray(batch.batch_sizes)
    starts = np.cumsum(sizes) - sizes
    # Step 0 reads a boundary.
    lengths = (sizes[:, None] > members).sum(axis=0) - 1
    forward = [starts[1 : n + 1] + row for row, n in zip(members, lengths)]
    backward = [starts[n:0:-1] + row for row, n in zip(members, lengths)]
    inputs = batch.forward.inputs
    sequences = [[batch.words[i] for i in inputs[rows]] for rows in forward]
    empty = [np.zeros(0, dtype=np.int64)]
    return Tokens(sequences, np.concatenate(forward + empty), np.concatenate(backward + empty))


def _measure_scale(encoder: TransformerEncoder, words: List[str]) -> Tensor:
    """RETURNS (Tensor): the deviation of each number of the layer, over frequent words; 1 if the
    transformer knows none of them. Warns if they are few (WL068)."""
    words = words[:_SCALE_WORDS]
    lines = [words[i : i + _SCALE_LENGTH] for i in range(0, len(words), _SCALE_LENGTH)]
    vectors, _ = encoder.read(lines, torch.device("cpu"))
    if len(vectors) < _FEW * len(words):
        text = Warnings.WL068.format(n_known=len(vectors), n_words=len(words))
        warnings.warn(text, stacklevel=2)
    if not len(vectors):
        return torch.ones(encoder.width)
    return vectors.std(dim=0, correction=0).clamp(min=1e-3)
