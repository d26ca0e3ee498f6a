"""The learning rate as a pure function of the step."""

import math

SCHEDULES = ("trapezoid", "cosine")


def learn_rate_factor(
    step: int, *, schedule: str, warmup_steps: int, total_steps: int, decay_share: float
) -> float:
    """Compute the learning rate of a step as a share of the highest one.

    step (int): steps done before this one.
    schedule (str): one of `SCHEDULES`. Both warm up linearly. Then "trapezoid" stays, and
        falls linearly to 0 over the last part; "cosine" falls to 0 at the end.
    warmup_steps (int): steps until the highest rate.
    total_steps (int): steps of the whole run.
    decay_share (float): of a trapezoid, the part of all steps in which it falls; 0 for a
        constant rate, 1 for a linear decay.
    RETURNS (float): between 0 and 1; above 0 before the last step is done.
    """
    if step < warmup_steps:
        return (step + 1) / (warmup_steps + 1)
    if schedule == "cosine":
        done = (step - warmup_steps) / max(1, total_steps - warmup_steps)
        return 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))
    left = (total_steps - step) / max(1.0, decay_share * total_steps)
    return max(0.0, min(1.0, left))
