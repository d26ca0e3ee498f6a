"""One training run of an experiment, and many of them; they resume, and may run at once."""

import io
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional

import spacy
import srsly
import torch
from spacy import util
from spacy.language import Language
from spacy.training import Corpus
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from thinc.api import Config, NumpyOps, set_current_ops

from ..bilm.config import BiLMConfig
from ..errors import Errors
from ..layer_weights import collect_weights
from ..loaders import load_embedder, read_config
from ..results import get_origin
from ..util.atomic import write_json
from .subsets import write_subset
from .variants import Variant, get_score, make_variant

_THREADS = "OMP_NUM_THREADS"


@dataclass(frozen=True)
class RunSettings:
    """What all runs of a folder share.

    corpus (str): folder with train.spacy, dev.spacy and, if the runs are to be tested,
        test.spacy.
    component (str): factory of the component to train.
    lang (str): language code.
    weights (str): folder of the biLM; "" for the bundled one.
    max_steps (int): updates at most.
    patience (int): updates without a better dev score; 0 for no end but `max_steps`.
    eval_frequency (int): updates between looks at dev.
    """

    corpus: str
    component: str
    lang: str = "en"
    weights: str = ""
    max_steps: int = 1000
    patience: int = 0
    eval_frequency: int = 100

    def fix(self, output: Path) -> None:
        """Note the settings in a folder, or hold them against what it says.

        RAISES (ValueError): EL065 if the folder has runs with others, EL066 for a missing
            corpus.
        """
        path, mine = output / "settings.json", {**asdict(self), **self._hash()}
        if not path.exists():
            write_json(path, mine)
        before = srsly.read_json(path)
        for key, value in mine.items():
            if before.get(key) != value:
                raise ValueError(
                    Errors.EL065.format(path=output, key=key, before=before.get(key), now=value)
                )

    def _hash(self) -> Dict[str, str]:
        """Of what lies at the paths: it may have changed."""
        found = {
            split: blake2b(path.read_bytes(), digest_size=8).hexdigest()
            for split, path in find_splits(Path(self.corpus)).items()
        }
        return {**found, "biLM": load_embedder(self.weights or None).hash_weights().hex()[:16]}


class Run(NamedTuple):
    """One training run.

    variant (Variant): what is trained.
    share (float): of the training docs, above 0 and at most 1.
    seed (int): of the training, and of the choice of docs.
    """

    variant: Variant
    share: float
    seed: int

    @property
    def name(self) -> str:
        """RETURNS (str): Of its files."""
        return f"{self.variant.name}_{self.share:g}_{self.seed}"


def run_all(
    runs: List[Run],
    settings: RunSettings,
    output: Path,
    *,
    cache: Optional[Path] = None,
    n_jobs: int = 1,
) -> Iterator[Dict[str, Any]]:
    """Make the runs whose results are not there yet.

    runs (List[Run]): what to run.
    settings (RunSettings): for all.
    output (Path): folder, of which each run gets a file NAME.json.
    cache (Optional[Path]): folder for the biLM's layers, which all runs share.
    n_jobs (int): runs at once, each with its share of the processors.
    YIELDS (Dict[str, Any]): result of each run, those that were there first.
    RAISES (ValueError): EL065 for other settings, EL066 for a missing corpus.
    """
    settings.fix(output)
    done = [output / f"{run.name}.json" for run in runs]
    yield from (srsly.read_json(path) for path in done if path.exists())
    missing = [run for run, path in zip(runs, done) if not path.exists()]
    n_threads = max(1, (os.cpu_count() or 1) // n_jobs)
    # Spawned: torch's threads do not survive a fork.
    context = get_context("spawn")
    with (
        _limited_threads(n_threads),
        ProcessPoolExecutor(n_jobs, context, _set_up_job, (n_threads,)) as pool,
    ):
        pending = [pool.submit(run_one, run, settings, output, cache) for run in missing]
        try:
            for future in as_completed(pending):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _test(nlp: Language, path: Optional[Path]) -> Optional[Dict[str, Any]]:
    return None if path is None else nlp.evaluate(list(Corpus(path)(nlp)))


@contextmanager
def _limited_threads(n_threads: int) -> Iterator[None]:
    """What NumPy's products of child processes may use is read when they start."""
    before = os.environ.get(_THREADS)
    os.environ[_THREADS] = str(n_threads)
    try:
        yield
    finally:
        del os.environ[_THREADS]
        if before is not None:
            os.environ[_THREADS] = before


def _set_up_job(n_threads: int) -> None:
    torch.set_num_threads(n_threads)
    # NumPy's own products are faster than Thinc's default ones: benchmarks/tagger_epoch.py.
    set_current_ops(NumpyOps(use_blis=False))


def run_one(run: Run, settings: RunSettings, output: Path, cache: Optional[Path]) -> Dict[str, Any]:
    """Train a pipeline, evaluate the best one, and write OUTPUT/NAME.json.

    RETURNS (Dict[str, Any]): what is written: "variant", "share", "seed", "score" (the key
        of it), "dev" and "test" (scores; test is None without test.spacy), "curve",
        "mixes", "n_docs", "seconds", "date", "versions", "settings".
    """
    start = time.perf_counter()
    splits = find_splits(Path(settings.corpus))
    with tempfile.TemporaryDirectory(dir=output) as folder:
        path = Path(folder)
        n_docs = write_subset(splits["train"], path / "train.spacy", run.share, run.seed)
        config = _make_config(run, settings, path, cache)
        (path / "out").mkdir()
        nlp = init_nlp(config)
        # Its table goes nowhere: the curve is read from the log.
        train(nlp, path / "out", stdout=io.StringIO(), stderr=io.StringIO())
        best = spacy.load(path / "out" / "model-best")
        result = {
            "variant": run.variant.name,
            "share": run.share,
            "seed": run.seed,
            "score": get_score(settings.component),
            "dev": best.meta["performance"],
            "test": _test(best, splits.get("test")),
            "curve": _read_curve(path / "log.jsonl", get_score(settings.component)),
            "mixes": [m._asdict() for m in collect_weights(best)] if run.variant.places else [],
            "n_docs": n_docs,
            "seconds": round(time.perf_counter() - start, 1),
            **get_origin(),
            "settings": asdict(settings),
        }
    write_json(output / f"{run.name}.json", result)
    return result


def find_splits(corpus: Path) -> Dict[str, Path]:
    """corpus (Path): a folder. RETURNS (Dict[str, Path]): files of "train", "dev" and, if
    there is one, "test". RAISES (ValueError): EL066 if one of the first two is missing."""
    paths = {split: corpus / f"{split}.spacy" for split in ("train", "dev", "test")}
    for split in ("train", "dev"):
        if not paths[split].is_file():
            raise ValueError(Errors.EL066.format(path=paths[split]))
    return {split: path for split, path in paths.items() if path.is_file()}


def get_depth(weights: str) -> int:
    """weights (str): folder of a biLM; "" for the bundled one. RETURNS (int): its LSTM
    layers."""
    return (read_config(weights) if weights else BiLMConfig()).depth


def _make_config(run: Run, settings: RunSettings, path: Path, cache: Optional[Path]) -> Config:
    shape, loader = None, None
    if settings.weights:
        shape = read_config(settings.weights)
        loader = {"@misc": "spacy-elmo.CheckpointLoader.v1", "path": settings.weights}
    config = make_variant(
        run.variant, settings.component, lang=settings.lang, shape=shape, loader=loader
    )
    if cache is not None and run.variant.places:
        block = config["initialize"].setdefault("components", {}).setdefault("elmo", {})
        block["activation_cache"] = {
            "@misc": "spacy-elmo.ActivationCache.v1",
            "path": str(cache),
            "dtype": "float32",
        }
    for key in ("max_steps", "patience", "eval_frequency"):
        config["training"][key] = getattr(settings, key)
    config["training"]["logger"] = {
        "@loggers": "spacy.ConsoleLogger.v3",
        "console_output": False,
        "output_file": str(path / "log.jsonl"),
    }
    config["system"]["seed"] = run.seed
    config["paths"]["train"] = str(path / "train.spacy")
    config["paths"]["dev"] = str(Path(settings.corpus) / "dev.spacy")
    return util.load_config_from_str(config.to_str(interpolate=False), interpolate=False)


def _read_curve(path: Path, score: str) -> List[Dict[str, Any]]:
    """Of each look at dev: updates, passes over the docs, score (in percent in the log)."""
    lines: Iterable[Dict[str, Any]] = srsly.read_jsonl(path)
    return [
        {"step": line["step"], "epoch": line["epoch"], "score": line["scores"][score] / 100}
        for line in lines
        if (line.get("scores") or {}).get(score) is not None
    ]
