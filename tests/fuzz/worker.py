"""The process that fuzzes one target: `python -m tests.fuzz.worker TARGET FOLDER SECONDS ENGINE
SEED`. It may be ended by an input, which is in the file "current" then."""

import faulthandler
import json
import logging
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from .guided import import_atheris, start
from .loop import fuzz
from .target import MOST_SECONDS, Finding, Job, attempt, limit_process, say

CURRENT, COUNTS, FINDINGS, CORPUS = "current", "counts.json", "findings", "corpus"
_EVERY = 2.0


class Recorder:
    """Run inputs, keep those that broke the promise, and count.

    job (Job): what to run.
    folder (Path): the target's.
    """

    def __init__(self, job: Job, folder: Path) -> None:
        self.job, self.folder = job, folder
        self.n_runs, self.outcomes, self.names = 0, Counter(), set()
        self._written = time.monotonic()

    def __call__(self, data: bytes) -> None:
        (self.folder / CURRENT).write_bytes(data)
        # A thread of C code: it also ends a process that hangs in a library.
        faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
        outcome, finding = attempt(self.job.run, data)
        faulthandler.cancel_dump_traceback_later()
        self.n_runs += 1
        self.outcomes[outcome] += 1
        if finding is not None and finding.name not in self.names:
            self.names.add(finding.name)
            keep(self.folder, finding, data)
        if finding is not None or time.monotonic() - self._written > _EVERY:
            self.write()

    def write(self) -> None:
        """Write the counts: libFuzzer ends the process without a word."""
        self._written = time.monotonic()
        content = {"n_runs": self.n_runs, "outcomes": self.outcomes.most_common()}
        (self.folder / COUNTS).write_text(json.dumps(content, indent=1))


def keep(folder: Path, finding: Finding, data: bytes) -> None:
    """Write a finding: its input, and what happened."""
    (folder / FINDINGS).mkdir(exist_ok=True)
    (folder / FINDINGS / finding.name).write_bytes(data)
    (folder / FINDINGS / f"{finding.name}.txt").write_text(finding.report)
    say(f"{folder.name}: {finding.name}")


def main(name: str, folder: Path, seconds: float, engine: str, seed: int) -> None:
    atheris = import_atheris() if engine == "atheris" else None
    if atheris is not None:
        # Coverage is counted in what is imported here.
        with atheris.instrument_imports(include=["spacy_elmo"], enable_loader_override=False):
            from .targets import TARGETS
    else:
        from .targets import TARGETS
    logging.getLogger("spacy_elmo").setLevel(logging.CRITICAL)
    inputs = folder / CORPUS
    inputs.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as workplace:
        job = TARGETS[name](Path(workplace))
        recorder = Recorder(job, folder)
        limit_process()
        if atheris is not None:
            for i, data in enumerate(job.seeds):
                (inputs / f"seed-{i}").write_bytes(data)
            start(recorder, inputs, seconds, seed)
            return
        corpus = [path.read_bytes() for path in sorted(inputs.iterdir())]
        fuzz(job._replace(run=recorder), seconds=seconds, seed=seed, corpus=corpus)
        recorder.write()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
