"""`due`: what a training step is followed by."""

from typing import NamedTuple

from .settings import TrainingSettings


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
