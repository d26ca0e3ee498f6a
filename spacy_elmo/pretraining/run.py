"""`pretrain`: a config and a folder -> a trained biLM."""

import os
from contextlib import ExitStack
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, Callable, Dict, Optional

from torch import Tensor

from ..checkpoints.formats import SoftmaxWeights
from ..checkpoints.native import write_native
from ..files import lock_folder, write_digests
from ..language_model.evaluation import Perplexity
from ..language_model.loading import collect_softmax
from ..language_model.softmax import split_softmax
from .checkpoints import BEST, LAST
from .config import RunConfig
from .log import Progress, Report
from .loop import Callbacks, train
from .prepare import PretrainingRun, prepare
from .processes import deterministic, join_processes


def save_checkpoint(run: PretrainingRun, state: Dict[str, Any], tensors: Dict[str, Tensor]) -> None:
    """Write a checkpoint, in the first process; the others wait.

    run (PretrainingRun): with the weights.
    state (Dict[str, Any]): progress, in JSON's types, with "step" and "n_tokens".
    tensors (Dict[str, Tensor]): from `Trainer.get_tensors`.
    """
    if run.processes.is_first:
        meta = describe_run(run, state["n_tokens"])
        run.folder.save(run.model.bilm, _pack_softmax(run), state, tensors, meta)
    run.processes.wait()  # none is ahead of a checkpoint


def save_model(
    run: PretrainingRun, name: str, n_tokens: int, dev: Optional[Perplexity] = None
) -> None:
    """Write a model, in the first process.

    run (PretrainingRun): with the weights.
    name (str): of the folder in the run's.
    n_tokens (int): predictions of one direction that it was trained on.
    dev (Optional[Perplexity]): of the held-out text.
    """
    if run.processes.is_first:
        write_native(
            run.model.bilm,
            run.output / name,
            softmax=_pack_softmax(run),
            meta=describe_run(run, n_tokens, dev),
            write_more=write_digests,
        )


def describe_run(
    run: PretrainingRun, n_tokens: int, dev: Optional[Perplexity] = None
) -> Dict[str, Any]:
    """run (PretrainingRun): the run. n_tokens, dev: as for `save_model`. RETURNS (Dict[str,
    Any]): for meta.json."""
    config = run.config
    meta: Dict[str, Any] = {
        "lang": config.nlp["lang"],
        "tokenizer": config.nlp.get("tokenizer") or {},
        "spacy_elmo_version": version("spacy-elmo"),
        "n_tokens_trained": n_tokens,
        "n_tokens_trained_before": run.n_tokens_before,
        "n_tokens_of_text": run.counts.get("n_tokens"),
        "training": {**asdict(config.training), "teachers": config.teachers},
        # What `evaluate` takes by default.
        "evaluation": {
            "cut": config.corpus.cut,
            "max_tokens": config.corpus.max_tokens,
            "limit": config.training.eval_sequences,
            "stream": config.training.state_steps > 0,
        },
    }
    return meta if dev is None else {**meta, "dev_perplexity": _describe_perplexity(dev)}


def _describe_perplexity(dev: Perplexity) -> Dict[str, Any]:
    forward, backward, mean = dev.perplexities
    return {
        "kind": "exact",
        "forward": forward,
        "backward": backward,
        "geometric_mean": mean,
        "n_sequences": dev.n_sequences,
        "n_predictions": dev.n_targets,
    }


def _pack_softmax(run: PretrainingRun) -> SoftmaxWeights:
    kind, arguments = split_softmax(run.config.training.softmax)
    return collect_softmax(run.model.softmax, kind, arguments, run.vocabulary.words)


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
        `torchrun` starts over after a failure.
    device (str): "cpu" or "cuda".
    on_report (Callable[[Report, int], None]): called with each report and the length of the
        run in steps, in every process.
    should_stop (Callable[[], bool]): called after every step.
    RETURNS (Progress): where it ended.
    RAISES (ValueError): as `RunConfig.check`, `prepare` and `train`, EL143 if another process
        trains in the folder.
    """
    checked = RunConfig.check(config)
    checked.require_device(device)
    with ExitStack() as stack:
        processes = stack.enter_context(join_processes(device))
        stack.enter_context(deterministic(checked.training.deterministic))
        output = Path(output)
        if processes.is_first:
            output.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock_folder(output, wait=False))
        resume = resume or int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)) > 0
        run = prepare(checked, output, resume=resume, processes=processes)
        callbacks = Callbacks(
            on_best=lambda report: save_model(run, BEST, report.n_tokens, report.dev),
            on_report=lambda report: on_report(report, run.total_steps),
            on_checkpoint=lambda progress, tensors: save_checkpoint(run, asdict(progress), tensors),
            should_stop=should_stop,
        )
        progress = train(run, callbacks)
        save_model(run, LAST, progress.n_tokens)
        return progress
