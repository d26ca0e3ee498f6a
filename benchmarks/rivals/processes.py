"""Child processes with a limited number of threads."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

SCRIPT = Path(__file__).parent.with_suffix(".py")
# What libraries of matrix products read at their start.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# What makes pipelines of several libraries faster: OpenBLAS's threads give their processors back
# at once when they wait, and the C library (glibc) keeps freed memory.
QUIET = {"OPENBLAS_THREAD_TIMEOUT": "4"}
KEPT = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}
# In the folder of a job.
LOG = "log.txt"


def limit_threads(n_threads: int = 1) -> dict[str, str]:
    """RETURNS (dict[str, str]): Environment of a process with so many threads."""
    return {**os.environ, **QUIET, **KEPT, **dict.fromkeys(_THREADS, str(n_threads))}


def run_processes(folders: Sequence[Path], n_jobs: int) -> Iterator[tuple[Path, int]]:
    """Run `rivals.py train FOLDER` for each folder, its output in FOLDER/log.txt.

    folders (Sequence[Path]): prepared ones.
    n_jobs (int): processes at once.
    YIELDS (tuple[Path, int]): a folder whose process has ended, and its exit status. Those that
        still run are ended if the caller is.
    """
    waiting = iter(folders)
    running: dict[subprocess.Popen[bytes], Path] = {}
    try:
        while True:
            while len(running) < n_jobs and (folder := next(waiting, None)) is not None:
                print(f"{time.strftime('%H:%M:%S')} {folder.parent.name} {folder.name}", flush=True)
                running[_start(folder)] = folder
            if not running:
                return
            time.sleep(0.2)
            for process in [p for p in running if p.poll() is not None]:
                yield running.pop(process), process.returncode
    finally:
        for process in running:
            process.terminate()
            process.wait()


def _start(folder: Path) -> "subprocess.Popen[bytes]":
    with (folder / LOG).open("wb") as log:
        return subprocess.Popen(
            [sys.executable, str(SCRIPT), "train", str(folder)],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=limit_threads(),
        )
