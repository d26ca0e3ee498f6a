"""`prepare`: a config and a folder -> all that a pretraining run needs."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

import torch

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..checkpoints.formats import CheckpointFiles, find_reader, read_words
from ..checkpoints.native import read_meta
from ..errors import Errors
from ..language_model.loading import copy_softmax_rows, require_same_shape, start_bilm
from ..language_model.objective import LanguageModel
from ..language_model.softmax import make_softmax, split_softmax
from ..language_model.vocabulary import SPECIAL_WORDS, Vocabulary
from ..text.languages import StaticVectors
from .checkpoints import Checkpoint, RunFolder, list_checkpoints
from .config import RunConfig, TrainingSettings, make_shape
from .processes import Processes
from .teachers import TeacherContext, make_teachers
from .words import VOCAB_FILE, RunText, count_targets, open_text, prepare_words, read_counts

logger = logging.getLogger("spacy_elmo")

# The models of a run.
LAST, BEST = "model-last", "model-best"


@dataclass(frozen=True)
class PretrainingRun:
    """All that training needs. The weights of the model change in place.

    counts (Dict[str, Any]): of the text, see `read_counts`.
    model (LanguageModel): with the weights to start from, on its device.
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
    """Open the text, find the checkpoint, count words and make the model. EL095 if the folder holds
    a run that is not to be resumed, EL096 if no checkpoint of it can be used."""
    config.training.require_rows(processes.n_ranks)
    has_checkpoints = bool(list_checkpoints(output))
    # The best model may have been written before the first checkpoint: then the run starts over.
    holds_run = has_checkpoints or (output / LAST).exists()
    if (holds_run or (output / BEST).exists()) and not resume:
        raise ValueError(Errors.EL095.format(path=output))
    output.mkdir(parents=True, exist_ok=True)
    text = open_text(config, output, processes)
    shape = make_shape(config.bilm, len(SPECIAL_WORDS), text.vectors)
    folder = RunFolder(output, config.identity(text.description, shape))
    checkpoint = folder.find_last() if resume else None
    if holds_run and checkpoint is None:
        raise ValueError(Errors.EL096.format(path=output))
    init = None if checkpoint else find_init(config)
    if processes.is_first:
        prepare_words(config, text, output, is_resumed=checkpoint is not None)
    processes.wait()
    counts = read_counts(output)
    words_folder = output if checkpoint is None else checkpoint.folder
    vocabulary = Vocabulary(read_words(words_folder / VOCAB_FILE))
    shape = make_shape(config.bilm, len(vocabulary), text.vectors)
    if checkpoint is not None:
        start: Optional[CheckpointFiles] = CheckpointFiles(checkpoint.folder)
        n_tokens_before = read_meta(checkpoint.folder).get("n_tokens_trained_before", 0)
    else:
        start = init
        n_tokens_before = 0 if init is None else _read_n_tokens(init)
        if processes.is_first:
            config.warn_of_length(_count_targets(config, text, counts))
    model = make_model(config.training, shape, vocabulary, text.vectors, start)
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


def find_init(config: RunConfig) -> Optional[CheckpointFiles]:
    """Find the weights to start from, if any, and compare their shape (EL097)."""
    paths: Mapping[str, Any] = config.paths
    if not paths.get("init"):
        return None
    files = CheckpointFiles.of(paths["init"], paths.get("init_weights"))
    require_same_shape(make_shape(config.bilm, len(SPECIAL_WORDS)), files)
    return files


def make_model(
    training: TrainingSettings,
    shape: BiLMConfig,
    vocabulary: Vocabulary,
    vectors: Optional[StaticVectors],
    start: Optional[CheckpointFiles] = None,
) -> LanguageModel:
    """Make the model with random weights, always the same ones, or with those of `start` and its
    softmax rows of common words."""
    torch.manual_seed(training.seed)
    bilm = BiLM(shape)
    if vectors is not None:
        bilm.word_table.fill(vectors.words, torch.from_numpy(vectors.vectors))
    elif shape.input == "words":
        bilm.word_table.fill(vocabulary.words[len(SPECIAL_WORDS) :])
    kind, arguments = split_softmax(training.softmax)
    softmax = make_softmax(kind, shape.direction_width, len(vocabulary), **arguments)
    context = TeacherContext(shape, vocabulary, training.batch_tokens, training.state_steps)
    teachers = make_teachers(training.teachers, context)
    model = LanguageModel(bilm, softmax, training.dropout, teachers)
    if start is not None:
        start_bilm(bilm, start)
        stored = find_reader(start).read_softmax(start)
        n_words = 0 if stored is None else copy_softmax_rows(softmax, vocabulary.words, stored)
        logger.info("Started from %s, softmax rows of %d words", start, n_words)
    return model


def _read_n_tokens(init: CheckpointFiles) -> int:
    """Tokens that the weights were trained on, if their meta.json records it."""
    meta = read_meta(init.path)
    counts = [meta.get(key) for key in ("n_tokens_trained", "n_tokens_trained_before")]
    return sum(count for count in counts if isinstance(count, int))


def _count_targets(config: RunConfig, text: RunText, counts: Dict[str, Any]) -> int:
    """Targets of the text; if it was not counted, at most those of a step."""
    if "n_tokens" in counts:
        return counts["n_tokens"] + counts["n_sequences"]
    return count_targets(text.corpus, config.training.batch_tokens)
