"""`train`: the loop. Each step is a function of the step's number, the weights and what
the optimizer remembers, so that a run goes on exactly where it was left."""

import logging
import math
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, List, Optional

from torch import Tensor

from ..errors import Errors, Warnings
from ..language_model.objective import LanguageModel
from ..language_model.perplexity import Perplexity
from ..language_model.readings import make_lm_batch
from ..language_model.teacher import PREFIX, get_teacher_tensors, set_teacher_tensors
from ..language_model.vocabulary import UNK_WORD
from .optimizers import get_tensors, make_optimizer, set_tensors
from .ranks import Processes
from .run_folder import Checkpoint
from .schedule import learn_rate_factor
from .settings import TrainingSettings
from .stream import BatchStream
from .train_step import Engine, gather_state, share_state

logger = logging.getLogger("spacy_elmo")

# So many steps in a row without a finite gradient end a run.
_MAX_BAD_STEPS = 10
# What the language model is called among the losses: no teacher's name is empty.
_MODEL = ""


@dataclass
class Progress:
    """Where a run is. In JSON's types, but for what the LSTM remembers.

    step (int): steps done.
    n_tokens (int): predictions of one direction that were trained on.
    n_bad_steps (int): steps without a finite gradient, since the last good one.
    position (Dict[str, Any]): of the stream.
    best (Optional[float]): best held-out perplexity, mean of both directions.
    best_step (int): when that was.
    scaler (Dict[str, Any]): what is known of the scale of float16 gradients.
    """

    position: Dict[str, Any]
    step: int = 0
    n_tokens: int = 0
    n_bad_steps: int = 0
    best: Optional[float] = None
    best_step: int = 0
    scaler: Dict[str, Any] = field(default_factory=dict)


@dataclass
class Report:
    """What happened since the last report.

    step (int): steps done.
    n_tokens (int): predictions of one direction, since the start of the run.
    learn_rate (float): of the last step.
    loss (float): mean training loss, nats for each prediction.
    gradient_norm (float): of the last step, before clipping.
    tokens_per_second (float): of all processes.
    teachers (Dict[str, float]): mean loss of each, for each prediction.
    dev (Optional[Perplexity]): of the held-out text, if it was measured.
    is_best (bool): whether that was the best so far.
    """

    step: int
    n_tokens: int
    learn_rate: float
    loss: float
    gradient_norm: float
    tokens_per_second: float
    teachers: Dict[str, float] = field(default_factory=dict)
    dev: Optional[Perplexity] = None
    is_best: bool = False


@dataclass
class Hooks:
    """What a run asks of its surroundings.

    save (Callable[[Progress, Dict[str, Tensor]], None]): writes a checkpoint.
    report (Callable[[Report], None]): tells people.
    measure (Optional[Callable[[], Perplexity]]): scores the held-out text.
    should_stop (Callable[[], bool]): whether somebody wants the run to end.
    """

    save: Callable[[Progress, Dict[str, Tensor]], None]
    report: Callable[[Report], None]
    measure: Optional[Callable[[], Perplexity]] = None
    should_stop: Callable[[], bool] = field(default=lambda: False)


def train(
    model: LanguageModel,
    stream: BatchStream,
    settings: TrainingSettings,
    total_steps: int,
    hooks: Hooks,
    processes: Processes,
    start: Progress,
    checkpoint: Optional[Checkpoint] = None,
) -> Progress:
    """Train until the last step, until somebody stops it, or until the held-out
    perplexity has not improved for long.

    model (LanguageModel): what to train, in place.
    stream (BatchStream): the steps.
    settings (TrainingSettings): how.
    total_steps (int): length of the run.
    hooks (Hooks): its surroundings.
    processes (Processes): who shares the work.
    start (Progress): where to start.
    checkpoint (Optional[Checkpoint]): what to go on from; its weights are loaded already.
    RETURNS (Progress): where it ended; saved.
    RAISES (ValueError): EL093 if gradients stay infinite, EL163 if weights are to be saved
        that are, EL094 if the text ends.
    """
    optimizer = make_optimizer(model, settings.optimizer)
    progress, state = start, None
    if checkpoint is not None:
        progress = Progress(**checkpoint.state)
        tensors = checkpoint.tensors
        others = ("state.", PREFIX)
        set_tensors(optimizer, {k: v for k, v in tensors.items() if not k.startswith(others)})
        set_teacher_tensors(model.teachers, tensors)
        state = share_state(tensors, settings, processes)
    idle = make_lm_batch([[UNK_WORD]], stream.vocabulary)
    engine = Engine(model, optimizer, settings, processes, idle)
    if progress.scaler:
        engine.scaler.load_state_dict(progress.scaler)
    window = _Window(model.teachers)
    for step in stream.steps(progress.position):
        if progress.step >= total_steps:
            break
        rate = settings.learn_rate * learn_rate_factor(
            progress.step,
            schedule=settings.schedule,
            warmup_steps=settings.warmup_steps,
            total_steps=total_steps,
            decay_share=settings.decay_share,
        )
        losses, norm, state = engine.step(step, progress.step, rate, state)
        # One exchange for all that the processes have to agree on.
        *losses, wants_stop = processes.sum([*losses, float(hooks.should_stop())])
        progress.n_bad_steps = 0 if math.isfinite(norm) else progress.n_bad_steps + 1
        if progress.n_bad_steps:
            logger.warning(Warnings.WL005.format(step=progress.step, norm=norm))
        if progress.n_bad_steps >= _MAX_BAD_STEPS:
            raise ValueError(Errors.EL093.format(step=progress.step, n_steps=_MAX_BAD_STEPS))
        progress.step += 1
        progress.n_tokens += step.n_targets
        progress.position = step.position
        progress.scaler = engine.scaler.state_dict()
        window.add(losses, step.n_targets)
        is_last = bool(wants_stop) or progress.step >= total_steps
        report = None
        # Not where somebody stops the run: one that is never stopped would not either.
        is_over = progress.step >= total_steps
        measured = hooks.measure is not None and (
            is_over or progress.step % settings.eval_frequency == 0
        )
        if measured or is_last or progress.step % settings.log_frequency == 0:
            report = window.make_report(progress, rate, norm)
        if measured:
            assert hooks.measure is not None and report is not None
            report.dev = hooks.measure()
            mean = report.dev.perplexities[2]
            report.is_best = math.isfinite(mean) and (progress.best is None or mean < progress.best)
            if report.is_best:
                progress.best, progress.best_step = mean, progress.step
            is_last |= bool(
                settings.patience and progress.step - progress.best_step >= settings.patience
            )
        if report is not None:
            hooks.report(report)
            window = _Window(model.teachers)
        if is_last or progress.step % settings.save_frequency == 0:
            _require_finite(model, progress.step)
            tensors = get_tensors(optimizer) | gather_state(state, processes)
            tensors |= get_teacher_tensors(model.teachers)
            hooks.save(progress, tensors)
        if is_last:
            return progress
    if progress.step < total_steps:
        raise ValueError(Errors.EL094.format(path="[corpus]"))
    return progress


def _require_finite(model: LanguageModel, step: int) -> None:
    """A checkpoint that nobody can use would take the place of one that is good."""
    if not all(weight.isfinite().all() for weight in model.parameters()):
        raise ValueError(Errors.EL163.format(step=step))


class _Window:
    """Sums since the last report."""

    def __init__(self, teachers: Iterable[str]) -> None:
        self.started = time.monotonic()
        self.losses = dict.fromkeys([_MODEL, *teachers], 0.0)
        self.n_targets = 0

    def add(self, losses: List[float], n_targets: int) -> None:
        for name, loss in zip(self.losses, losses):
            self.losses[name] += loss
        self.n_targets += n_targets

    def make_report(self, progress: Progress, rate: float, norm: float) -> Report:
        seconds = max(1e-9, time.monotonic() - self.started)
        means = {name: loss / (2 * self.n_targets) for name, loss in self.losses.items()}
        return Report(
            step=progress.step,
            n_tokens=progress.n_tokens,
            learn_rate=rate,
            loss=means.pop(_MODEL),
            gradient_norm=norm,
            tokens_per_second=self.n_targets / seconds,
            teachers=means,
        )
