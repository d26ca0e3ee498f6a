"""A fuzzer of our own, where atheris is not installed, and for the default tests.

Inputs that are treated in a new way (another error from another line, another result) are kept,
and mutated further.
"""

import time
from collections import Counter
from random import Random
from typing import Dict, List, NamedTuple, Optional

from .mutation import mutate
from .target import Finding, Job, attempt

_MOST_KEPT = 1000


class Result(NamedTuple):
    """n_runs (int): inputs. outcomes (Counter): how they were treated. findings (Dict[str,
    Finding]): by name. inputs (Dict[str, bytes]): of the findings."""

    n_runs: int
    outcomes: Counter
    findings: Dict[str, Finding]
    inputs: Dict[str, bytes]


def fuzz(
    job: Job,
    *,
    seconds: float = float("inf"),
    n_runs: float = float("inf"),
    seed: int = 0,
    corpus: Optional[List[bytes]] = None,
) -> Result:
    """Run mutations of seeds until the time is over or the number is reached.

    job (Job): what to run.
    seconds (float), n_runs (float): how long, and how many; the seeds themselves come first.
    seed (int): of what is drawn.
    corpus (Optional[List[bytes]]): more inputs to start from; kept ones are added.
    """
    rng, end = Random(seed), time.monotonic() + seconds
    kept = [*job.seeds, *(corpus or [])]
    todo = list(kept)
    result = Result(0, Counter(), {}, {})
    n = 0
    while n < n_runs and time.monotonic() < end:
        data = todo.pop(0) if todo else mutate(rng.choice(kept), rng)
        outcome, finding = attempt(job.run, data)
        if outcome not in result.outcomes and len(kept) < _MOST_KEPT:
            kept.append(data)
            if corpus is not None:
                corpus.append(data)
        result.outcomes[outcome] += 1
        if finding is not None and finding.name not in result.findings:
            result.findings[finding.name] = finding
            result.inputs[finding.name] = data
        n += 1
    return result._replace(n_runs=n)
