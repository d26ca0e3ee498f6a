"""Training runs of an experiment: resumable, one or several at a time, and the files they write."""

import configparser
import io
import os
import random
import shutil
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, Dict, Generator, List, NamedTuple, Optional, Sequence, Tuple

import spacy
import srsly
import torch
from spacy import registry, util
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from thinc.api import Config, require_gpu, use_ops

from ..checkpoints.loaders import load_embedder, read_config
from ..errors import Errors
from ..files import digest, digest_file, read_json_object, write_json
from ..layers.torch_shim import NO_GPU, check_gpu, get_gpu_name
from ..pipeline.weights_logger import collect_weights
from ..text.formats import load_docbin
from ..text.languages import require_language
from ..utils import end_with_parent, release_memory, show_reason
from .results import Result, get_origin
from .variants import Variant, make_variant

# A further test of semantic roles, whose predicates are given in the others.
FOUND_PREDICATES = "predicates found"
# Only in the configs of runs, so it is not an entry point.
_LOGGER = "spacy-elmo.RunLog.v1"
# Settings that are compared by the content of the files.
_PATHS = ("corpus", "weights", "config", "vectors")


@dataclass(frozen=True)
class RunSettings:
    """Settings that all runs of a folder share.

    corpus (str): folder with train.spacy, dev.spacy and optionally test.spacy; other .spacy files
        are further test sets.
    component (str): factory of the component to train.
    lang (str): language code.
    weights (str): folder of the biLM; "" for the bundled one.
    max_steps (int): updates at most.
    patience (int): updates without a better dev score before a run ends; 0 to ignore it.
    eval_frequency (int): updates between evaluations on dev.
    config (str): training config with an `ElmoTok2Vec`; "" for the preset word_features.
    vectors (str): pipeline with static vectors; "" for none.
    """

    corpus: str
    component: str
    lang: str = "en"
    weights: str = ""
    max_steps: int = 1000
    patience: int = 0
    eval_frequency: int = 100
    config: str = ""
    vectors: str = ""

    def describe(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): settings, and digests of the files that they name."""
        found = asdict(self)
        for path in find_corpus(Path(self.corpus)).values():
            found[path.name] = digest_file(path)
        if self.vectors:
            try:
                vectors = spacy.load(self.vectors).vocab.vectors
            except (OSError, ValueError) as err:
                raise ValueError(f"Cannot load the static vectors '{self.vectors}': {err}") from err
            if not len(vectors):
                raise ValueError(
                    f"The pipeline '{self.vectors}' has no static vectors. Give one that has, such "
                    "as `--vectors en_core_web_md`."
                )
            found["static vectors"] = digest(vectors.to_bytes())
        found["biLM"] = load_embedder(self.weights or None).hash_weights().hex()[:16]
        return found


class Run(NamedTuple):
    """A training run with a share of the training docs, above 0 and at most 1. The seed is that of
    the training and of the choice of docs."""

    variant: Variant
    share: float
    seed: int

    @property
    def name(self) -> str:
        """Name of its files."""
        return f"{self.variant.name}_{self.share:g}_{self.seed}"


def run_all(
    runs: Sequence[Run],
    settings: RunSettings,
    output: Path,
    *,
    cache: Optional[Path] = None,
    n_jobs: int = 1,
    gpu_id: int = NO_GPU,
    verbose: bool = False,
) -> Generator[Result, None, None]:
    """Train and evaluate the runs that have no result yet, and yield the results, existing ones
    first. Settings are checked before the first run. output (Path): folder, in which each run
    writes NAME.json. cache (Optional[Path]): folder for the biLM's layers. n_jobs (int): runs at
    once. RAISES (ValueError): EL065 if the folder has runs with other settings, EL066 for an
    unreadable corpus, EL251 if a process was killed."""
    get_score(settings.component)
    require_language(settings.lang)
    check_gpu(gpu_id)
    for path in find_corpus(Path(settings.corpus)).values():
        read_docs(path)
    for run in runs:
        if not 0 <= run.seed < 2**32:
            expected = f"an integer from 0 to {2**32 - 1}"
            raise ValueError(Errors.EL012.format(key="seed", value=run.seed, expected=expected))
    described = settings.describe()
    configs = [make_run_config(run, settings) for run in runs]
    output.mkdir(parents=True, exist_ok=True)
    missing = []
    for run, config in zip(runs, configs):
        path = output / f"{run.name}.json"
        if path.exists():
            yield _read_result(path, {**described, "config file": _hash(config)})
        else:
            missing.append(run)
    jobs = [(run, settings, output, cache, gpu_id, verbose) for run in missing]
    if n_jobs == 1:
        for job in jobs:
            yield run_one(*job)
    elif jobs:
        yield from _run_parallel(jobs, min(n_jobs, len(jobs)))


def _read_result(path: Path, now: Dict[str, Any]) -> Result:
    """Read the result of a run, which must have been made with the same settings."""
    result = read_json_object(path)
    before = {**result.get("settings", {}), "config file": result.get("config")}
    for key in {**now, **before}:
        if key not in _PATHS and before.get(key) != now.get(key):
            values = {"before": before.get(key), "now": now.get(key)}
            raise ValueError(Errors.EL065.format(path=path, key=key, **values))
    return result


def _run_parallel(jobs: List[Tuple[Any, ...]], n_jobs: int) -> Generator[Result, None, None]:
    n_threads = max(1, torch.get_num_threads() // n_jobs)
    # NumPy's products read this when a process starts.
    os.environ["OMP_NUM_THREADS"] = str(n_threads)
    # Spawned: torch's threads do not survive a fork.
    context = get_context("spawn")
    with ProcessPoolExecutor(n_jobs, context, _set_up_process, (n_threads,)) as pool:
        futures = [pool.submit(run_one, *job) for job in jobs]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool as err:
            remedy = "Start the command again, with fewer `--n-jobs` if needed"
            raise ValueError(Errors.EL251.format(remedy=remedy)) from err
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _set_up_process(n_threads: int) -> None:
    end_with_parent()
    # Ctrl-C ends a run at once, without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    torch.set_num_threads(n_threads)


def run_one(
    run: Run,
    settings: RunSettings,
    output: Path,
    cache: Optional[Path] = None,
    gpu_id: int = NO_GPU,
    verbose: bool = False,
) -> Result:
    """Train a pipeline, evaluate the best one, and write OUTPUT/NAME.json. Arguments are those of
    `run_all`. RETURNS (Dict[str, Any]): the result."""
    start = time.perf_counter()
    files = find_corpus(Path(settings.corpus))
    config = make_run_config(run, settings)
    result: Result = {"variant": run.variant.name, "share": run.share, "seed": run.seed}
    result.update(settings=settings.describe(), config=_hash(config))
    # A biLM that is trained has no layers to keep.
    if cache is not None and run.variant.places and config["components"]["elmo"]["model"]["frozen"]:
        block = config["initialize"]["components"]["elmo"]
        block["activation_cache"] = {
            "@misc": "spacy-elmo.ActivationCache.v1",
            "path": str(cache / Path(settings.corpus).resolve().name),
            "dtype": "float32",
        }
    score = get_score(settings.component, config["components"][settings.component])

    def report(step: int, value: Optional[float]) -> None:
        shown = "none" if value is None else f"{value:.2%}"
        title = make_title(run.variant.name, run.share, run.seed)
        print(f"{title}: update {step:,}, dev {shown}", file=sys.stderr)

    if gpu_id != NO_GPU:
        require_gpu(gpu_id)
    # NumPy's own products are faster than Thinc's default ones: benchmarks/tagger_epoch.py.
    faster = use_ops("numpy", use_blis=False) if gpu_id == NO_GPU else nullcontext()
    with faster, TemporaryDirectory(prefix=f"{run.name}.", dir=output) as folder:
        part = Path(folder) / "train.spacy"
        n_docs = write_subset(files["train"], part, run.share, run.seed)
        config["paths"]["train"] = str(part)
        nlp, curve = train_best(config, score, Path(folder), report if verbose else None)
        tests = {n: _test(nlp, path) for n, path in files.items() if n not in ("train", "dev")}
        pipe: Any = nlp.get_pipe(settings.component)
        if "test" in files and getattr(pipe, "predicates", "") == "given":
            pipe.predicates = "predicted"
            tests[FOUND_PREDICATES] = _test(nlp, files["test"])
        result.update(
            score=score,
            dev=nlp.meta["performance"],
            test=tests.pop("test", None),
            curve=curve,
            mixes=[mix._asdict() for mix in collect_weights(nlp)] if run.variant.places else [],
            n_docs=n_docs,
            seconds=round(time.perf_counter() - start, 1),
            **get_origin(),
        )
        if tests:
            result["further"] = tests
        if gpu := get_gpu_name():
            result["gpu"] = gpu
    write_json(output / f"{run.name}.json", result)
    release_memory()
    return result


def make_title(variant: str, share: float, seed: int) -> str:
    """Describe a run for messages."""
    return f"{variant}, {100 * share:g}%, seed {seed}"


def train_best(
    config: Config,
    score: str,
    output: Path,
    report: Optional[Callable[[int, Optional[float]], None]] = None,
) -> Tuple[Language, List[Dict[str, Any]]]:
    """Train a pipeline as `spacy train` does, without its output. RETURNS (Tuple[Language,
    List[Dict[str, Any]]]): model-best, loaded; "step", "epoch" and "score" of each evaluation."""
    curve: List[Dict[str, Any]] = []

    def log(info: Optional[Dict[str, Any]]) -> None:
        if info is None:
            return
        value = info["other_scores"].get(score)
        # A dev set without labels has no score.
        if value is not None:
            curve.append({"step": info["step"], "epoch": info["epoch"], "score": value})
        if report is not None:
            report(info["step"], value)
        # Batches differ in size: over hours, freed memory adds up to several times what is used.
        release_memory()

    registry.loggers.register(_LOGGER, func=lambda: lambda nlp, stdout, stderr: (log, lambda: None))
    config["training"]["logger"] = {"@loggers": _LOGGER}
    text = config.to_str(interpolate=False)
    nlp = init_nlp(util.load_config_from_str(text, interpolate=False))
    train(nlp, output, stdout=io.StringIO(), stderr=io.StringIO())
    return spacy.load(output / "model-best"), curve


def _test(nlp: Language, path: Path) -> Dict[str, Any]:
    """Evaluate on a file, read as the config reads dev."""
    block = {**nlp.config.interpolate()["corpora"]["dev"], "path": str(path)}
    read = registry.resolve({"corpus": block})["corpus"]
    return nlp.evaluate(list(read(nlp)))


def make_run_config(run: Run, settings: RunSettings) -> Config:
    """Make the training config of a run, without the path of its training docs."""
    shape, loader = None, None
    if settings.weights:
        shape = read_config(settings.weights)
        loader = {"@misc": "spacy-elmo.CheckpointLoader.v1", "path": settings.weights}
    base = load_base(settings.config) if settings.config else None
    config = make_variant(
        run.variant,
        settings.component,
        lang=settings.lang,
        shape=shape,
        loader=loader,
        base=base,
        vectors=settings.vectors,
    )
    for key in ("max_steps", "patience", "eval_frequency"):
        config["training"][key] = getattr(settings, key)
    # The docs are those of the settings, also if the user's config names others.
    for split in ("train", "dev"):
        block = config.get("corpora", {}).get(split, {})
        if "path" in block:
            block["path"] = f"${{paths.{split}}}"
        if f"{split}_corpus" in config["training"]:
            config["training"][f"{split}_corpus"] = f"corpora.{split}"
    config["system"]["seed"] = run.seed
    config["paths"]["dev"] = str(Path(settings.corpus) / "dev.spacy")
    return config


def load_base(path: str) -> Config:
    """Read a training config."""
    try:
        config = util.load_config(path, interpolate=False)
    except (OSError, ValueError, configparser.Error) as err:
        raise ValueError(f"'{path}' is not a training config: {show_reason(err)}") from err
    if "pipeline" not in config.get("nlp", {}) or "components" not in config:
        raise ValueError(f"'{path}' is not a training config: it has no [nlp] pipeline.")
    return config


def _hash(config: Config) -> str:
    """Digest of a run's config, without paths: `RunSettings.describe` has digests of the files."""
    parts = {key: config[key] for key in ("nlp", "components", "corpora", "training")}
    return digest(srsly.json_dumps(parts, sort_keys=True).encode("utf8"))


def get_score(component: str, block: Optional[Dict[str, Any]] = None) -> str:
    """Find the score to choose the best model of a factory by, such as "tag_acc". block
    (Optional[Dict[str, Any]]): config of the component."""
    nlp = Language()
    known = nlp.has_factory(component)
    weights = nlp.get_factory_meta(component).default_score_weights if known else None
    scores = {key: weight for key, weight in (weights or {}).items() if weight}
    if not scores:
        raise ValueError(Errors.EL061.format(name=component))
    best = max(scores, key=lambda key: scores[key])
    # Names of spans' scores contain their key; the default ones contain the default key, "sc".
    return best.replace("spans_sc_", f"spans_{(block or {}).get('spans_key', 'sc')}_")


def find_corpus(folder: Path) -> Dict[str, Path]:
    """Find train.spacy, dev.spacy, perhaps test.spacy, and further test sets, by name."""
    # Systems write hidden files beside those that are copied.
    found = {path.stem: path for path in sorted(folder.glob("[!.]*.spacy")) if path.is_file()}
    for split in ("train", "dev"):
        if split not in found:
            error = "it does not exist"
            raise ValueError(Errors.EL066.format(path=folder / f"{split}.spacy", error=error))
    order: List[str] = ["train", "dev", "test"]
    return {**{name: found.pop(name) for name in order if name in found}, **found}


def read_docs(path: Path) -> DocBin:
    """Read a .spacy file with at least one doc."""
    try:
        docs = load_docbin(path)
    except Exception as err:  # msgpack, NumPy and spaCy each have their own
        raise ValueError(Errors.EL066.format(path=path, error=err)) from err
    if len(docs) == 0:
        raise ValueError(Errors.EL066.format(path=path, error="it has no docs"))
    return docs


def write_subset(source: Path, path: Path, share: float, seed: int) -> int:
    """Write a random share of a file's docs, at least one. With the same seed, a smaller share is a
    part of a larger one. RETURNS (int): docs written."""
    docs = read_docs(source)
    if share >= 1:
        shutil.copyfile(source, path)
        return len(docs)
    order = random.Random(seed).sample(range(len(docs)), len(docs))
    n_docs = max(1, round(share * len(docs)))
    kept = list(docs.get_docs(spacy.blank("xx").vocab))
    # A DocBin that was read does not know whether it has user data.
    has_user_data = any(data is not None for data in docs.user_data)
    part = DocBin(attrs=docs.attrs, store_user_data=has_user_data)
    for i in sorted(order[:n_docs]):
        part.add(kept[i])
    part.to_disk(path)
    return n_docs
