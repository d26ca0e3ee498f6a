"""The model of a pretraining run: its shape, its memory, and the weights it starts from."""

import logging
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

import torch

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..checkpoints.checkpoint_files import CheckpointFiles
from ..checkpoints.formats import find_reader
from ..checkpoints.native import META_FILE
from ..checkpoints.steady_reading import read_steadily
from ..errors import Errors
from ..files import find_folder, read_json_object
from ..language_model.loading import (
    copy_softmax_rows,
    require_start,
    start_bilm,
    start_cells,
    start_words,
)
from ..language_model.objective import LanguageModel
from ..language_model.softmax import make_softmax, split_softmax
from ..language_model.teacher import TeacherContext, make_teachers
from ..language_model.vocabulary import SPECIAL_WORDS, Vocabulary
from ..text.static_vectors import StaticVectors
from ..utils import read_total_memory
from .optimizers import NUMBERS_PER_WEIGHT
from .settings import TrainingSettings, invalid, make_settings

logger = logging.getLogger("spacy_elmo")


def make_shape(
    block: Mapping[str, Any], n_words: int, vectors: Optional[StaticVectors] = None
) -> BiLMConfig:
    """block (Mapping[str, Any]): [bilm]. n_words (int): words to predict. vectors
    (Optional[StaticVectors]): for `input = "vectors"`; None if they are not read yet.
    RETURNS (BiLMConfig): the shape, sizes of tables filled in. RAISES (ValueError): EL010,
    EL090 and EL091 for an impossible one."""
    sizes: Dict[str, Any] = {}
    if block.get("input") == "words":
        sizes = {"n_words": n_words - len(SPECIAL_WORDS)}
    if block.get("input") == "vectors":
        table_shape = (1, 1) if vectors is None else vectors.vectors.shape
        sizes = dict(zip(("n_words", "vector_width"), table_shape))
    try:
        return make_settings(BiLMConfig, {**block, **sizes}, "bilm")
    except TypeError as err:
        expected = "[[width, number], ...]"
        raise invalid("bilm", "filters", block.get("filters"), expected) from err


def require_memory(shape: BiLMConfig, n_words: int) -> None:
    """shape (BiLMConfig): from `make_shape`. n_words (int): words to predict. RAISES
    (ValueError): EL160 if the machine cannot hold what is trained."""
    with torch.device("meta"):
        n_weights = sum(weight.numel() for weight in BiLM(shape).parameters())
    n_weights += n_words * (shape.direction_width + 1)
    # The weight, its gradient and the state of the optimizer, 4 bytes each.
    needed, total = 4 * (2 + NUMBERS_PER_WEIGHT) * n_weights, read_total_memory()
    if total and needed > total:
        raise ValueError(
            Errors.EL160.format(n_weights=n_weights, needed=needed / 1e9, total=total / 1e9)
        )


def make_model(
    training: TrainingSettings,
    shape: BiLMConfig,
    vocabulary: Vocabulary,
    vectors: Optional[StaticVectors],
    weights: Optional[CheckpointFiles] = None,
    part: str = "all",
) -> LanguageModel:
    """training (TrainingSettings): with softmax, teachers and seed. shape (BiLMConfig): from
    `make_shape`. vocabulary (Vocabulary): the words to predict. vectors
    (Optional[StaticVectors]): the given ones. weights (Optional[CheckpointFiles]): what to
    start from; None for random weights, always the same ones. part (str): which of them, one
    of `INIT_PARTS`. RETURNS (LanguageModel): the model. RAISES (ValueError): EL160 as
    `require_memory`, EL097 for weights of another shape, EL330 for weights without the rows of
    the softmax that are not trained."""
    require_memory(shape, len(vocabulary))
    torch.manual_seed(training.seed)
    bilm = BiLM(shape)
    if vectors is not None:
        bilm.word_table.fill(vectors.words, torch.from_numpy(vectors.vectors))
    elif shape.input == "words":
        bilm.word_table.fill(vocabulary.words[len(SPECIAL_WORDS) :])
    kind, arguments = split_softmax(training.softmax)
    softmax = make_softmax(kind, shape.direction_width, len(vocabulary), **arguments)
    context = TeacherContext(
        shape, vocabulary, training.batch_tokens, training.state_steps, training.train_part
    )
    teachers = make_teachers(training.teachers, context)
    model = LanguageModel(bilm, softmax, training.dropout, teachers)
    if weights is not None:
        n_words = len(vocabulary)
        n_missing = n_words - _load_weights(model, vocabulary, weights, part)
        if n_missing and training.train_part == "lstms":
            message = Errors.EL330.format(path=weights.path, n_missing=n_missing, n_words=n_words)
            raise ValueError(message)
    if training.train_part == "lstms":
        model.train_lstms_alone()
    return model


def find_init(
    paths: Mapping[str, Any], block: Mapping[str, Any], part: str
) -> Optional[CheckpointFiles]:
    """Find the weights to start from, and whether they fit, before words are counted for hours.

    paths (Mapping[str, Any]): [paths].
    block (Mapping[str, Any]): [bilm].
    part (str): which of them, one of `INIT_PARTS`.
    RETURNS (Optional[CheckpointFiles]): the weights; None for random ones.
    RAISES (ValueError): EL030 to EL038 if they are missing or cannot be read, EL097 if they are of
        another shape, EL091 for a shape that cannot start from that part of them.
    """
    if not paths.get("init"):
        return None
    files = CheckpointFiles.of(paths["init"], paths.get("init_weights"))
    shape = make_shape(block, len(SPECIAL_WORDS))
    reason = f'with init_part = "{part}"'
    if part != "all" and shape.input != "characters":
        raise invalid("bilm", "input", shape.input, f'"characters" {reason}')
    if part == "cells" and not shape.projection:
        raise invalid("bilm", "projection", shape.projection, f"true {reason}")
    require_start(shape, files, part)
    return files


def _load_weights(
    model: LanguageModel, vocabulary: Vocabulary, files: CheckpointFiles, part: str
) -> int:
    """Load a part of the weights of the biLM, one of `INIT_PARTS`, and the rows of the softmax of
    the words that both have. RETURNS (int): how many words these are."""
    starts = {"all": start_bilm, "cells": start_cells, "words": start_words}

    def load() -> int:
        starts[part](model.bilm, files)
        stored = find_reader(files).read_softmax(files)
        if stored is None:
            return 0
        return copy_softmax_rows(model.softmax, vocabulary.words, stored)

    n_words = read_steadily(files, load)
    logger.info("Started from %s, softmax rows of %d words", files, n_words)
    return n_words


def read_n_tokens_before(checkpoint: Optional[Path], init: Optional[CheckpointFiles]) -> int:
    """checkpoint (Optional[Path]): folder that the run resumes from. init
    (Optional[CheckpointFiles]): else the weights that it starts from. RETURNS (int): tokens
    that those weights were trained on before the run, as far as meta.json tells."""
    if checkpoint is not None:
        return read_json_object(checkpoint / META_FILE).get("n_tokens_trained_before", 0)
    if init is None:
        return 0
    path = find_folder(init.path) / META_FILE
    meta = read_json_object(path) if path.exists() else {}
    counts = [meta.get(key) for key in ("n_tokens_trained", "n_tokens_trained_before")]
    return sum(count for count in counts if isinstance(count, int))
