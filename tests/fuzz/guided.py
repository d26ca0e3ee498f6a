"""Coverage-guided fuzzing by atheris (libFuzzer), with our mutations."""

import re
import sys
from pathlib import Path
from random import Random
from typing import List, Optional

from .mutation import mutate
from .target import MOST_SECONDS, Run

# A share of inputs that libFuzzer changes byte by byte.
_BY_BYTES = 0.1
_DONE = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)")


def import_atheris() -> Optional[object]:
    """RETURNS (Optional[object]): The module; None where it is not installed."""
    try:
        import atheris
    except ImportError:
        return None
    return atheris


def start(run: Run, corpus: Path, seconds: float, seed: int) -> None:
    """Run inputs until the time is over; libFuzzer ends the process then.

    run (Run): must not raise.
    corpus (Path): folder of inputs, to which those of new coverage are added.
    """
    import atheris

    def change(data: bytes, most: int, seed: int) -> bytes:
        rng = Random(seed)
        if rng.random() < _BY_BYTES and not data.startswith(b"BUNDLE"):
            return atheris.Mutate(data, most)
        changed = mutate(data, rng)
        return changed if len(changed) <= most else data

    arguments = [
        sys.argv[0], str(corpus), f"-max_total_time={max(1, round(seconds))}", f"-seed={seed + 1}",
        f"-timeout={10 * MOST_SECONDS}", "-max_len=1000000", "-rss_limit_mb=0", "-len_control=0",
        f"-artifact_prefix={corpus.parent}/", "-print_final_stats=1",
    ]  # fmt: skip
    atheris.Setup(arguments, run, custom_mutator=change)
    atheris.Fuzz()


def read_coverage(lines: List[str]) -> str:
    """The last line of libFuzzer's in which it says how far it came."""
    found = [match for line in lines if (match := _DONE.search(line))]
    return f"{found[-1][1]} branches of ours" if found else ""
