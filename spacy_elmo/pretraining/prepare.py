"""`prepare`: a config and a folder -> all that a pretraining run needs."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

import torch

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..checkpoints.formats import CheckpointFiles, find_reader
from ..checkpoints.native import META_FILE
from ..errors import Errors, Warnings
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
from ..language_model.vocabulary import SPECIAL_WORDS, Vocabulary
from ..pretraining.teachers import TeacherContext, make_teachers
from ..text.languages import StaticVectors
from .checkpoints import BEST, LAST, Checkpoint, RunFolder, has_checkpoints, set_aside
from .config import RunConfig, TrainingSettings, invalid, make_shape, require_memory
from .processes import Processes
from .words import RunText, count_targets, open_text, prepare_words, read_counts, read_vocabulary

logger = logging.getLogger("spacy_elmo")


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
    starts[part](model.bilm, files)
    stored = find_reader(files).read_softmax(files)
    n_words = 0
    if stored is not None:
        n_words = copy_softmax_rows(model.softmax, vocabulary.words, stored)
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


@dataclass(frozen=True)
class PretrainingRun:
    """All that training needs. The weights of the model change in place.

    config (RunConfig): what to do.
    output (Path): the run's folder.
    processes (Processes): who shares the work.
    text (RunText): what is read.
    vocabulary (Vocabulary): the words to predict.
    counts (Dict[str, Any]): of the text, see `read_counts`.
    model (LanguageModel): with the weights to start from, on its device.
    folder (RunFolder): for checkpoints.
    checkpoint (Optional[Checkpoint]): what to resume from; None at the start of a run.
    n_tokens_before (int): tokens that its first weights were trained on before this run.
    """

    config: RunConfig
    output: Path
    processes: Processes
    text: RunText
    vocabulary: Vocabulary
    counts: Dict[str, Any]
    model: LanguageModel
    folder: RunFolder
    checkpoint: Optional[Checkpoint]
    n_tokens_before: int

    @property
    def total_steps(self) -> int:
        """RETURNS (int): Length of the whole run."""
        n_targets = self.counts.get("n_tokens", 0) + self.counts.get("n_sequences", 0)
        return self.config.count_steps(n_targets)


def prepare(
    config: RunConfig, output: Path, *, resume: bool, processes: Processes
) -> PretrainingRun:
    """Open the text, count its words, find the checkpoint and make the model.

    config (RunConfig): what to do.
    output (Path): the run's folder; made if it is missing.
    resume (bool): whether to resume the run that the folder holds, if any.
    processes (Processes): who shares the work.
    RETURNS (PretrainingRun): ready to train.
    RAISES (ValueError): EL095 if the folder holds a run and `resume` is false, EL096 if
        it has no usable checkpoint, EL080 to EL089 for the text, EL097 if initial weights do
        not fit, EL336 for more processes than a step has rows.
    """
    config.training.require_rows(processes.n_ranks)
    holds_run = _holds_run(output, resume, processes)
    output.mkdir(parents=True, exist_ok=True)
    text = open_text(config, output, processes)
    part = config.training.init_part
    init = None if holds_run else find_init(config.paths, config.bilm, part)
    if processes.is_first:
        prepare_words(config, text.corpus, output, text.description)
    processes.wait()
    vocabulary, counts = read_vocabulary(output), read_counts(output)
    shape = make_shape(config.bilm, len(vocabulary), text.vectors)
    folder = RunFolder(output, config.identity(text.description, len(vocabulary), shape))
    checkpoint = _find_checkpoint(folder, resume, processes)
    if holds_run and checkpoint is None:
        raise ValueError(Errors.EL096.format(path=output))
    if checkpoint is None and processes.is_first:
        config.warn_of_length(_count_targets(config, text, counts))
    n_tokens_before = read_n_tokens_before(checkpoint and checkpoint.folder, init)
    # A checkpoint has all of the run's own weights, whatever part of others it started from.
    weights = init
    if checkpoint is not None:
        weights, part = CheckpointFiles(checkpoint.folder), "all"
    model = make_model(config.training, shape, vocabulary, text.vectors, weights, part)
    return PretrainingRun(
        config=config,
        output=output,
        processes=processes,
        text=text,
        vocabulary=vocabulary,
        counts=counts,
        model=model.to(processes.device),
        folder=folder,
        checkpoint=checkpoint,
        n_tokens_before=n_tokens_before,
    )


def _holds_run(output: Path, resume: bool, processes: Processes) -> bool:
    """Whether the folder holds a run to resume. RAISES (ValueError): EL095 if it does, and
    `resume` is false."""
    models = [name for name in (LAST, BEST) if find_folder(output / name).exists()]
    if (models or has_checkpoints(output)) and not resume:
        raise ValueError(Errors.EL095.format(path=output))
    # The last model is written after a checkpoint, the best one perhaps before the first.
    starts_over = models == [BEST] and not has_checkpoints(output)
    processes.wait()
    if starts_over and processes.is_first:
        kept = set_aside(find_folder(output / BEST))
        logger.warning(Warnings.WL030.format(path=output, kept=kept))
    return bool(models or has_checkpoints(output)) and not starts_over


def _find_checkpoint(folder: RunFolder, resume: bool, processes: Processes) -> Optional[Checkpoint]:
    """The checkpoint to resume from. Refused ones after it are renamed: the run will come to
    their steps again."""
    checkpoint = folder.find_last() if resume else None
    processes.wait()  # until all have found the same one
    if checkpoint is not None and processes.is_first:
        folder.set_aside_after(checkpoint.folder)
    return checkpoint


def _count_targets(config: RunConfig, text: RunText, counts: Dict[str, Any]) -> int:
    """Of the text, or of the part of it that a step reads if it was not counted."""
    if "n_tokens" in counts:
        return counts["n_tokens"] + counts["n_sequences"]
    return count_targets(text.corpus, config.training.batch_tokens)
