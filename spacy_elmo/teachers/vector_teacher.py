"""`StaticVectorsTeacher`: the word layer learns what static vectors know of a word."""

from typing import Any, Dict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ..errors import Errors
from ..language_model.teacher import Lesson, Teacher, TeacherContext, require_number
from ..language_model.vocabulary import SPECIAL_WORDS
from .vector_table import VectorTable, read_vector_table

KIND = "static_vectors"


class StaticVectorsTeacher(Teacher):
    """Predict a word's static vector from its word vector, through a linear head; the loss
    of a word is 1 - cosine. Words outside the table are left out.

    Each distinct word of a step weighs about the same, so that rare words count: a word that
    is read n times weighs 1 / n each time, with the n that its rank lets expect. (What the
    step really has would depend on how processes share it out.)

    context (TeacherContext): what it is made for.
    path (str): a pipeline's folder with static vectors, or its vocab folder.
    weight (float): of this loss beside the language model's.
    RAISES (ValueError): EL182 if there are no usable vectors, EL181 for a wrong setting, or if the
        word layer is not trained.
    """

    def __init__(self, context: TeacherContext, *, path: str = "", weight: float = 1.0) -> None:
        super().__init__()
        require_number(KIND, "weight", weight)
        if context.train_part != "all":
            part = context.train_part
            problem = f'[training] train_part = "{part}" leaves the word layer as it is'
            raise ValueError(Errors.EL181.format(kind=KIND, problem=problem))
        self.weight = weight
        self.table = read_vector_table(path)
        self.shares = expect_shares(self.table, context)
        self.head = nn.Linear(context.shape.direction_width, self.table.vectors.shape[1])

    def loss(self, lesson: Lesson) -> Tensor:
        """See `Teacher.loss`."""
        batch, device = lesson.batch, lesson.vectors.device
        n_read = np.bincount(
            np.concatenate([batch.forward.inputs, batch.backward.inputs]),
            minlength=len(batch.words),
        )
        places = self.table.find(batch.words)
        known = np.flatnonzero(places >= 0)
        places = places[known]
        weights = self.weight * self.shares[places] * n_read[known]
        with torch.autocast(device.type, enabled=False):
            guesses = self.head(lesson.vectors.to(self.head.weight.dtype))
            guesses = guesses[torch.from_numpy(known).to(device)]  # (n_known, vector_width)
            targets = torch.from_numpy(self.table.get(places)).to(guesses)
            errors = 1 - F.cosine_similarity(guesses, targets, dim=1)
            return (errors * torch.from_numpy(weights).to(guesses)).sum()

    def describe(self) -> Dict[str, Any]:
        """See `Teacher.describe`."""
        return {"weight": self.weight, "table": self.table.hash()}


def expect_shares(table: VectorTable, context: TeacherContext) -> NDArray:
    """Compute how much each occurrence of a word should weigh.

    table (VectorTable): the words.
    context (TeacherContext): with the vocabulary by frequency, and the tokens of a step.
    RETURNS (NDArray): the chance that the word is in a step, divided by how often it is
        expected there; float32, shape (n_words,).
    """
    words = context.vocabulary.words[len(SPECIAL_WORDS) :]
    ranks = np.full(len(table.keys), len(words), dtype="float64")
    places = table.find(words)
    ranks[places[places >= 0]] = np.flatnonzero(places >= 0)
    # Zipf's law: the word of rank r comes as 1 / (r + 1), all of them sum to 1.
    expected = context.batch_tokens / ((ranks + 1) * np.log(len(words) + 2))
    return (-np.expm1(-expected) / expected).astype("float32")
