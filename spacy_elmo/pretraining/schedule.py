"""The learning rate as a pure function of the step."""

import math

SCHEDULES = ("constant", "linear", "cosine", "inverse_sqrt", "trapezoid")


def learn_rate_factor(
    step: int, *, schedule: str, warmup_steps: int, total_steps: int, decay_share: float
) -> float:
    """Compute the learning rate of a step as a share of the highest one.

    step (int): steps done before this one.
    schedule (str): one of `SCHEDULES`. All warm up linearly. Then "constant" stays;
        "linear" and "cosine" fall to 0 at the end; "inverse_sqrt" falls with the root
        of the step; "trapezoid" stays, and falls linearly to 0 over the last part.
    warmup_steps (int): steps until the highest rate.
    total_steps (int): steps of the whole run.
    decay_share (float): of a trapezoid, the part of all steps in which it falls.
    RETURNS (float): between 0 and 1; above 0 before the last step is done.
    """
    if step < warmup_steps:
        return (step + 1) / (warmup_steps + 1)
    done = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    done = min(1.0, done)
    if schedule == "linear":
        return 1.0 - done
    if schedule == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * done))
    if schedule == "inverse_sqrt":
        return math.sqrt(max(1, warmup_steps) / max(1, step))
    if schedule == "trapezoid":
        left = (total_steps - step) / max(1.0, decay_share * total_steps)
        return max(0.0, min(1.0, left))
    return 1.0
