"""One training run, in a process of its own."""

import shutil
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from spacy.training import Corpus
from spacy.util import load_config
from thinc.api import NumpyOps, require_gpu, set_current_ops, set_gpu_allocator

from spacy_elmo.experiments.results import get_origin
from spacy_elmo.experiments.runs import train_best
from spacy_elmo.files import read_json_object, write_json

# Packages whose versions are noted, too, if they are installed.
OTHERS = ("spacy-transformers", "transformers")
# In the folder of a run.
CONFIG, JOB, MODEL = "config.cfg", "job.json", "model"


def run_job(folder: Path) -> None:
    """Train what FOLDER/config.cfg says, choose on dev, test once, and write the result.

    folder (Path): the run's own, with job.json: "result", the file to write; "row", "task",
        "seed" and "settings", which are copied; "score", the key; "test", a .spacy file;
        "keep", folder for the best pipeline, or None; "gpu_id", or -1.
    """
    torch.set_num_threads(1)
    job = read_json_object(folder / JOB)
    device = choose_device(job["gpu_id"])
    start, cpu_start = time.perf_counter(), time.process_time()
    config = load_config(folder / CONFIG, interpolate=False)
    (folder / "out").mkdir(exist_ok=True)
    best, curve = train_best(config, job["score"], folder / "out", print_score)
    result: dict[str, Any] = {
        **{key: job[key] for key in ("row", "task", "seed", "score", "settings")},
        "dev": best.meta["performance"],
        "test": best.evaluate(list(Corpus(job["test"])(best))),
        "curve": curve,
        "seconds": round(time.perf_counter() - start, 1),
        "cpu_seconds": round(time.process_time() - cpu_start, 1),
        "device": device,
        **get_origin(),
    }
    with suppress(PackageNotFoundError):
        result["versions"].update({name: version(name) for name in OTHERS})
    if job["keep"]:
        shutil.rmtree(job["keep"], ignore_errors=True)
        shutil.move(folder / "out" / "model-best", job["keep"])
    # Last: what has a result is done.
    write_json(Path(job["result"]), result)


def choose_device(gpu_id: int) -> str:
    """gpu_id (int): -1 for none. RETURNS (str): what is trained on."""
    if gpu_id < 0:
        # NumPy's products are faster than Thinc's default ones: benchmarks/tagger_epoch.py.
        set_current_ops(NumpyOps(use_blis=False))
        return "cpu"
    set_gpu_allocator("pytorch")
    require_gpu(gpu_id)
    return torch.cuda.get_device_name(gpu_id)


def print_score(step: int, score: float | None) -> None:
    """Print an evaluation on dev."""
    print(step, score, flush=True)
