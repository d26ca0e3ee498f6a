"""`train`: the loop. Each step is a function of its number, the weights and the state of optimizer
and LSTM, so that a run resumes exactly where it stopped."""

import logging
import math
from dataclasses import asdict, dataclass, field
from typing import Callable, Dict, List, NamedTuple, Tuple

from torch import Tensor

from ..errors import Errors, Warnings
from ..files import digest
from ..language_model.evaluation import Perplexity, Scorer, measure
from ..language_model.objective import LanguageModel
from ..language_model.readings import make_lm_batch
from ..language_model.vocabulary import UNK_WORD, Vocabulary
from ..utils import show_reason
from .config import TrainingSettings, make_optimizer
from .log import Progress, Report, ReportWindow
from .prepare import PretrainingRun
from .processes import Processes
from .stream import BatchStream, Step
from .trainer import States, StepResult, Trainer


class Due(NamedTuple):
    """What is to be done after a step, in this order.

    evaluate (bool): measure the perplexity of the held-out text.
    report (bool): tell how training goes.
    save (bool): write a checkpoint.
    stop (bool): end the run.
    """

    evaluate: bool
    report: bool
    save: bool
    stop: bool

    def stopping(self) -> "Due":
        """RETURNS (Due): the same, and the end of the run, which has a report and a
        checkpoint."""
        return self._replace(report=True, save=True, stop=True)


def due(
    step: int,
    settings: TrainingSettings,
    total_steps: int,
    *,
    has_dev: bool,
    stop_requested: bool = False,
) -> Due:
    """Decide what follows a step. `patience` is not among the reasons to stop: it depends on
    the evaluation.

    step (int): steps done.
    settings (TrainingSettings): with the frequencies.
    total_steps (int): length of the run.
    has_dev (bool): whether there is held-out text.
    stop_requested (bool): whether somebody wants the run to end.
    RETURNS (Due): what is to be done.
    """
    is_over = step >= total_steps
    now = Due(
        # Not because a stop was requested: a run that is never stopped does not do so either,
        # and both have to end with the same bits.
        evaluate=has_dev and (is_over or step % settings.eval_frequency == 0),
        report=step % settings.log_frequency == 0,
        save=step % settings.save_frequency == 0,
        stop=False,
    )
    now = now._replace(report=now.report or now.evaluate)
    return now.stopping() if is_over or stop_requested else now


# Tokens of a pass.
_BATCH_TOKENS = 4096


def digest_sequences(sequences: List[List[str]]) -> str:
    """sequences (List[List[str]]): the held-out text. RETURNS (str): the same for the same words;
    "" for none."""
    text = "\n".join(" ".join(words) for words in sequences)
    return digest(text.encode("utf-8", "surrogatepass")) if sequences else ""


def measure_dev(
    model: LanguageModel,
    vocabulary: Vocabulary,
    sequences: List[List[str]],
    processes: Processes,
    *,
    stream: bool,
) -> Perplexity:
    """model (LanguageModel): put into evaluation mode. vocabulary (Vocabulary): its words.
    sequences (List[List[str]]): the held-out text. processes (Processes): who shares the
    work. stream (bool): whether the state is carried from one sequence to the next. RETURNS
    (Perplexity): exact, of all sequences."""
    scorer = Scorer(model, vocabulary)
    if stream:  # in the text's order, which cannot be shared out
        return measure(scorer, sequences, stream=True, batch_tokens=_BATCH_TOKENS)
    share = sequences[processes.rank :: processes.n_ranks]
    of_share = asdict(measure(scorer, share, batch_tokens=_BATCH_TOKENS))
    forward, backward, *counts = processes.sum([float(value) for value in of_share.values()])
    return Perplexity(forward, backward, *map(int, counts))


logger = logging.getLogger("spacy_elmo")

# So many steps in a row without a finite gradient end a run.
_MAX_BAD_STEPS = 10


@dataclass
class Callbacks:
    """What training calls, in every process.

    on_report (Callable[[Report], None]): with each report.
    on_best (Callable[[Report], None]): before that, if the held-out perplexity was never
        better.
    on_checkpoint (Callable[[Progress, Dict[str, Tensor]], None]): when a checkpoint is due,
        with all that is needed to resume besides the weights.
    should_stop (Callable[[], bool]): after every step: whether somebody wants the run to end.
    """

    on_report: Callable[[Report], None]
    on_best: Callable[[Report], None]
    on_checkpoint: Callable[[Progress, Dict[str, Tensor]], None]
    should_stop: Callable[[], bool] = field(default=lambda: False)


def train(run: PretrainingRun, callbacks: Callbacks) -> Progress:
    """Train until the last step, until a stop is requested, or until the held-out perplexity
    has not improved for long.

    run (PretrainingRun): from `prepare`; its model is trained in place.
    callbacks (Callbacks): what to call.
    RETURNS (Progress): where it ended; saved.
    RAISES (ValueError): EL093 if gradients stay infinite, EL163 if weights are to be saved
        that are, EL094 if the text ends.
    """
    settings = run.config.training
    stream, trainer = _open_stream(run), _make_trainer(run)
    progress, states = _start(run, stream, trainer)
    if _has_ended(run, progress):
        return progress
    window = ReportWindow(run.model.teachers)
    for step in stream.steps(progress.position):
        rate = settings.learn_rate * settings.learn_rate_factor(progress.step, run.total_steps)
        result = trainer.step(step, progress.step, rate, states)
        states = result.states
        # One exchange for all that the processes have to agree on.
        sums = run.processes.sum([*result.losses, float(callbacks.should_stop())])
        window.add(sums[:-1], step.n_targets)
        _advance(progress, step, result, trainer)
        now = _due(run, progress, stop_requested=sums[-1] > 0)
        if now.report:
            report = window.make_report(progress, rate, result.gradient_norm)
            now = _report(run, progress, report, now, callbacks)
            window.restart()
        if now.save:
            _require_finite(run, progress.step)
            callbacks.on_checkpoint(progress, trainer.get_tensors(states))
        if now.stop:
            return progress
    raise ValueError(Errors.EL094.format(path="[corpus]"))


def _open_stream(run: PretrainingRun) -> BatchStream:
    settings, corpus = run.config.training, run.config.corpus
    return BatchStream(
        run.text.corpus.read,
        run.vocabulary,
        batch_tokens=settings.batch_tokens,
        buffer_tokens=corpus.buffer_tokens,
        seed=settings.seed,
        rank=run.processes.rank,
        n_ranks=run.processes.n_ranks,
        n_pieces=settings.accumulate,
        n_steps=settings.state_steps,
        prefetch=corpus.n_workers > 0,
    )


def _make_trainer(run: PretrainingRun) -> Trainer:
    settings = run.config.training
    optimizer = make_optimizer(run.model, settings.optimizer)
    idle = make_lm_batch([[UNK_WORD]], run.vocabulary)
    return Trainer(run.model, optimizer, settings, run.processes, idle)


def _start(run: PretrainingRun, stream: BatchStream, trainer: Trainer) -> Tuple[Progress, States]:
    """Where the run starts, or resumes with the checkpoint; its weights are loaded already.
    RAISES (ValueError): EL257 if the state of the checkpoint is not of this run."""
    held_out = digest_sequences(run.text.dev)
    if run.checkpoint is None:
        return Progress(stream.start(run.text.corpus.start()), held_out=held_out), None
    try:
        progress = Progress(**run.checkpoint.state)
        if progress.compare_with(held_out):
            logger.warning(Warnings.WL062.format(path=run.config.corpus.dev))
        if progress.scaler:
            trainer.scaler.load_state_dict(progress.scaler)
        return progress, trainer.set_tensors(run.checkpoint.tensors)
    # Whatever torch raises for a state of other weights, whose digests are right.
    except (ValueError, KeyError, TypeError, IndexError, RuntimeError) as err:
        folder, error = run.checkpoint.folder, show_reason(err)
        raise ValueError(Errors.EL257.format(folder=folder, error=error)) from err


def _has_ended(run: PretrainingRun, progress: Progress) -> bool:
    """Whether a run that is resumed had come to its end, or a new one has no steps."""
    is_evaluated = progress.step > 0 and _due(run, progress, stop_requested=False).evaluate
    is_given_up = is_evaluated and progress.is_out_of_patience(run.config.training.patience)
    return is_given_up or progress.step >= run.total_steps


def _advance(progress: Progress, step: Step, result: StepResult, trainer: Trainer) -> None:
    """Count a step. RAISES (ValueError): EL093 if there were too many without a gradient."""
    norm = result.gradient_norm
    progress.n_bad_steps = 0 if math.isfinite(norm) else progress.n_bad_steps + 1
    if progress.n_bad_steps:
        logger.warning(Warnings.WL005.format(step=progress.step, norm=norm))
    if progress.n_bad_steps >= _MAX_BAD_STEPS:
        raise ValueError(Errors.EL093.format(step=progress.step, n_steps=_MAX_BAD_STEPS))
    progress.step += 1
    progress.n_tokens += step.n_targets
    progress.position = step.position
    progress.scaler = trainer.scaler.state_dict()


def _due(run: PretrainingRun, progress: Progress, *, stop_requested: bool) -> Due:
    return due(
        progress.step,
        run.config.training,
        run.total_steps,
        has_dev=bool(run.text.dev),
        stop_requested=stop_requested,
    )


def _report(
    run: PretrainingRun, progress: Progress, report: Report, now: Due, callbacks: Callbacks
) -> Due:
    """Report, with an evaluation if it is due. RETURNS (Due): with the end of the run if that
    was the last one that patience allows."""
    if not now.evaluate:
        callbacks.on_report(report)
        return now
    settings, text = run.config.training, run.text
    is_stream = settings.state_steps > 0
    report.dev = measure_dev(run.model, run.vocabulary, text.dev, run.processes, stream=is_stream)
    report.is_best = progress.update_best(report.dev.perplexities[2])
    if report.is_best:
        callbacks.on_best(report)
    callbacks.on_report(report)
    return now.stopping() if progress.is_out_of_patience(settings.patience) else now


def _require_finite(run: PretrainingRun, step: int) -> None:
    """A checkpoint that nobody can use would take the place of one that is good."""
    if not all(weight.isfinite().all() for weight in run.model.parameters()):
        raise ValueError(Errors.EL163.format(step=step))
