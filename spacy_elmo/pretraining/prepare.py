"""`prepare`: a config and a folder -> all that a pretraining run needs."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Optional

from ..checkpoints.checkpoint_files import CheckpointFiles
from ..errors import Errors, Warnings
from ..files import find_folder
from ..language_model.objective import LanguageModel
from ..language_model.vocabulary import Vocabulary
from .ranks import Processes
from .run_config import RunConfig
from .run_folder import BEST, LAST, Checkpoint, RunFolder, has_checkpoints, set_aside
from .run_model import find_init, make_model, make_shape, read_n_tokens_before
from .run_text import RunText, open_text
from .run_words import count_targets, prepare_words, read_counts, read_vocabulary

logger = logging.getLogger("spacy_elmo")


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
