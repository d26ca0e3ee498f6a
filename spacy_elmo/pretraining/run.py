"""`pretrain`: a config and a folder -> a trained biLM.

Each step is a function of its number, the weights and the state of optimizer and LSTMs, so that
a run resumes exactly where it stopped.
"""

import logging
import math
import os
from contextlib import ExitStack
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Tuple

from torch import Tensor

from ..checkpoints.formats import SoftmaxWeights
from ..checkpoints.native import write_native
from ..errors import Errors, Warnings
from ..files import digest, lock_folder, write_digests
from ..language_model.evaluation import Perplexity, Scorer, measure
from ..language_model.loading import collect_softmax
from ..language_model.softmax import split_softmax
from .config import RunConfig
from .log import Progress, Report, ReportWindow
from .prepare import BEST, LAST, PretrainingRun, prepare
from .processes import deterministic, join_processes
from .stream import BatchStream
from .trainer import States, Trainer

logger = logging.getLogger("spacy_elmo")

# A run ends after this many steps in a row without a finite gradient.
_MAX_BAD_STEPS = 10


def pretrain(
    config: Dict[str, Any],
    output: Path,
    *,
    resume: bool = False,
    device: str = "cpu",
    on_report: Callable[[Report, int], None] = lambda report, total_steps: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Progress:
    """Train a biLM on raw text, to the end or until a stop is requested; write `model-last`
    and `model-best`. Under `torchrun`, call it in each process.

    config (Dict[str, Any]): see `configs/pretrain.cfg`, interpolated.
    output (Path): folder for checkpoints and models.
    resume (bool): resume the run that the folder holds, if it holds one; always so when
        `torchrun` starts again after a failure.
    device (str): "cpu" or "cuda".
    on_report (Callable[[Report, int], None]): called with each report and the length of the
        run in steps, in every process.
    should_stop (Callable[[], bool]): called after every step.
    RETURNS (Progress): where it ended.
    RAISES (ValueError): as `RunConfig.check` and `prepare`; EL093 if training diverges, EL094
        if the text ends, EL143 if another process trains in the folder.
    """
    checked = RunConfig.check(config)
    checked.require_device(device)
    with ExitStack() as stack:
        processes = stack.enter_context(join_processes(device))
        stack.enter_context(deterministic(checked.training.deterministic))
        output = Path(output)
        if processes.is_first:
            output.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock_folder(output))
        resume = resume or int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)) > 0
        run = prepare(checked, output, resume=resume, processes=processes)
        progress = train(run, on_report, should_stop)
        save_model(run, LAST, progress.n_tokens)
        return progress


def train(
    run: PretrainingRun,
    on_report: Callable[[Report, int], None],
    should_stop: Callable[[], bool],
) -> Progress:
    """Train until the last step, until a stop is requested, or until the held-out perplexity has
    not improved for `patience` steps; save checkpoints and the best model."""
    settings, total_steps = run.config.training, run.total_steps
    stream = BatchStream(
        run.corpus.read,
        run.vocabulary,
        settings,
        run.processes,
        buffer_tokens=run.config.corpus.buffer_tokens,
        prefetch=run.config.corpus.n_workers > 0,
    )
    trainer = Trainer(run.model, run.vocabulary, settings, run.processes)
    progress, states = _start(run, stream, trainer)
    if _has_ended(run, progress):
        return progress
    window = ReportWindow(run.model.teachers)
    for step in stream.steps(progress.position):
        rate = settings.learn_rate * settings.learn_rate_factor(progress.step, total_steps)
        result = trainer.step(step, progress.step, rate, states)
        states = result.states
        # One exchange for all that the processes have to agree on.
        *losses, n_stopped = run.processes.sum([*result.losses, float(should_stop())])
        window.add(losses, step.n_targets)
        progress.n_bad_steps += 1
        if math.isfinite(result.gradient_norm):
            progress.n_bad_steps = 0
        else:
            logger.warning(Warnings.WL005.format(step=progress.step, norm=result.gradient_norm))
        if progress.n_bad_steps >= _MAX_BAD_STEPS:
            problem = f"{_MAX_BAD_STEPS} steps in a row had no finite gradient"
            raise ValueError(Errors.EL093.format(step=progress.step, problem=problem))
        progress.step += 1
        progress.n_tokens += step.n_targets
        progress.position = step.position
        progress.scaler = trainer.scaler.state_dict()
        # A stop is no reason for an evaluation, so that a resumed run ends with the same bits.
        is_last = progress.step >= total_steps or n_stopped > 0
        is_evaluated = _is_evaluated(run, progress.step)
        if is_evaluated or is_last or progress.step % settings.log_frequency == 0:
            report = window.make_report(progress, rate, result.gradient_norm)
            if is_evaluated:
                _evaluate(run, progress, report)
                is_last = is_last or progress.is_out_of_patience(settings.patience)
            on_report(report, total_steps)
            window.restart()
        if is_last or progress.step % settings.save_frequency == 0:
            save_checkpoint(run, progress, trainer.get_tensors(states))
        if is_last:
            return progress
    raise ValueError(Errors.EL094.format(path="[corpus]"))


def _start(run: PretrainingRun, stream: BatchStream, trainer: Trainer) -> Tuple[Progress, States]:
    """Start, or restore the state of the checkpoint; its weights are loaded already."""
    text = "\n".join(" ".join(words) for words in run.dev)
    held_out = digest(text.encode("utf-8", "surrogatepass")) if run.dev else ""
    if run.checkpoint is None:
        return Progress(stream.start(run.corpus.start()), held_out=held_out), None
    progress = Progress(**run.checkpoint.state)
    if held_out and held_out != progress.held_out:
        if progress.best is not None:
            # Perplexities of two texts cannot be compared.
            logger.warning(Warnings.WL062.format(path=run.config.corpus.dev))
            progress.best, progress.best_step = None, progress.step
        progress.held_out = held_out
    if progress.scaler:
        trainer.scaler.load_state_dict(progress.scaler)
    return progress, trainer.set_tensors(run.checkpoint.tensors)


def _is_evaluated(run: PretrainingRun, step: int) -> bool:
    is_due = step % run.config.training.eval_frequency == 0 or step >= run.total_steps
    return bool(run.dev) and is_due


def _has_ended(run: PretrainingRun, progress: Progress) -> bool:
    """Whether a resumed run had come to its end."""
    is_evaluated = progress.step > 0 and _is_evaluated(run, progress.step)
    is_given_up = is_evaluated and progress.is_out_of_patience(run.config.training.patience)
    return is_given_up or progress.step >= run.total_steps


def _evaluate(run: PretrainingRun, progress: Progress, report: Report) -> None:
    """Add the perplexity of the held-out text to a report, and save the model if it is the best."""
    scorer, dev, processes = Scorer(run.model, run.vocabulary), run.dev, run.processes
    if run.config.training.state_steps:  # in order, so it cannot be divided
        report.dev = measure(scorer, dev, stream=True)
    else:
        share = measure(scorer, dev[processes.rank :: processes.n_ranks])
        forward, backward, *counts = processes.sum([float(n) for n in asdict(share).values()])
        report.dev = Perplexity(forward, backward, *map(int, counts))
    report.is_best = progress.update_best(report.dev.perplexities[2])
    if report.is_best:
        save_model(run, BEST, progress.n_tokens, report.dev)


def save_checkpoint(run: PretrainingRun, progress: Progress, tensors: Dict[str, Tensor]) -> None:
    """Write a checkpoint, in the first process, while the others wait."""
    if not all(weight.isfinite().all() for weight in run.model.parameters()):
        problem = "some weights are not finite numbers, so they are not saved"
        raise ValueError(Errors.EL093.format(step=progress.step, problem=problem))
    if run.processes.is_first:
        meta = _describe_run(run, progress.n_tokens)
        run.folder.save(run.model.bilm, _pack_softmax(run), asdict(progress), tensors, meta)
    run.processes.wait()


def save_model(
    run: PretrainingRun, name: str, n_tokens: int, dev: Optional[Perplexity] = None
) -> None:
    """Write a model, in the first process, with its held-out perplexity if measured."""
    if run.processes.is_first:
        write_native(
            run.model.bilm,
            run.output / name,
            softmax=_pack_softmax(run),
            meta=_describe_run(run, n_tokens, dev),
            write_more=write_digests,
        )


def _describe_run(
    run: PretrainingRun, n_tokens: int, dev: Optional[Perplexity] = None
) -> Dict[str, Any]:
    """Make the content of meta.json."""
    config = run.config
    meta: Dict[str, Any] = {
        "lang": config.nlp["lang"],
        "tokenizer": config.nlp.get("tokenizer") or {},
        "spacy_elmo_version": version("spacy-elmo"),
        "n_tokens_trained": n_tokens,
        "n_tokens_trained_before": run.n_tokens_before,
        "n_tokens_of_text": run.counts.get("n_tokens"),
        "training": {**asdict(config.training), "teachers": config.teachers},
        # Defaults of `evaluate`.
        "evaluation": {
            "cut": config.corpus.cut,
            "max_tokens": config.corpus.max_tokens,
            "limit": config.training.eval_sequences,
            "stream": config.training.state_steps > 0,
        },
    }
    if dev is not None:
        meta["dev_perplexity"] = {
            "kind": "exact",
            **dict(zip(("forward", "backward", "geometric_mean"), dev.perplexities)),
            "n_sequences": dev.n_sequences,
            "n_predictions": dev.n_targets,
        }
    return meta


def _pack_softmax(run: PretrainingRun) -> SoftmaxWeights:
    kind, arguments = split_softmax(run.config.training.softmax)
    return collect_softmax(run.model.softmax, kind, arguments, run.vocabulary.words)
