"""`pretrain`: a config and a folder -> a trained biLM."""

import os
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Callable, Dict

from ..files import lock_folder
from .loop import Callbacks, train
from .prepare import prepare
from .ranks import deterministic, join_processes
from .run_config import RunConfig
from .run_folder import BEST, LAST
from .run_output import save_checkpoint, save_model
from .run_progress import Progress, Report


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
