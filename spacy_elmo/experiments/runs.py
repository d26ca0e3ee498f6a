"""One training run of an experiment."""

import configparser
import io
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional

import spacy
import srsly
from spacy import util
from spacy.language import Language
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from thinc.api import Config

from ..bilm.config import BiLMConfig
from ..checkpoints.loaders import read_config
from ..errors import Errors
from ..files import digest, write_checked_json
from ..layers.torch_shim import get_gpu_name
from ..pipeline.weights_logger import collect_weights
from ..utils import show_reason
from .progress import OnProgress, RunLog
from .results import get_origin
from .run_settings import RunSettings
from .subsets import find_further, find_splits, write_subset
from .variant_configs import make_variant
from .variants import Variant, get_score

# Of the result of a run, but for "further", which is there if there are further tests, and
# "gpu", the name of the one it was made on.
RESULT_KEYS = {
    "variant", "share", "seed", "score", "dev", "test", "curve", "mixes", "n_docs", "seconds",
    "date", "versions", "settings", "config",
}  # fmt: skip
# A further test of roles: on new text nobody gives the predicates.
FOUND_PREDICATES = "predicates found"


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

    @property
    def title(self) -> str:
        """RETURNS (str): For people."""
        return make_title(self.variant.name, self.share, self.seed)


def make_title(variant: str, share: float, seed: int) -> str:
    """RETURNS (str): Of a run."""
    return f"{variant}, {100 * share:g}%, seed {seed}"


def run_one(
    run: Run, settings: RunSettings, output: Path, cache: Optional[Path], report: OnProgress
) -> Dict[str, Any]:
    """Train a pipeline, evaluate the best one, and write OUTPUT/NAME.json. Its
    temporary files lie in OUTPUT/NAME.partial.

    report (Callable[[RunProgress], None]): called with the progress.
    RETURNS (Dict[str, Any]): what is written, with `RESULT_KEYS`: "score" is the key of the
        score, "dev" and "test" hold scores; test is None without test.spacy. "further" holds
        those of further tests, by name: other sets, and for roles the test set with predicates that
        the component has found, where they are given otherwise. "config" is `hash_config`.
    """
    start = time.perf_counter()
    # Of what is trained, not of what the files say when it is done.
    config_hash = hash_config(run, settings)
    splits = find_splits(Path(settings.corpus))
    block = make_run_config(run, settings)["components"][settings.component]
    score = get_score(settings.component, block)
    log = RunLog(run.title, score, report)
    path = get_workplace(output, run)
    shutil.rmtree(path, ignore_errors=True)
    (path / "out").mkdir(parents=True)
    n_docs = write_subset(splits["train"], path / "train.spacy", run.share, run.seed)
    nlp = init_nlp(_make_config(run, settings, path, cache, log))
    best = train_best(nlp, path / "out")
    result = {
        "variant": run.variant.name,
        "share": run.share,
        "seed": run.seed,
        "score": score,
        "dev": best.meta["performance"],
        "test": _test(best, nlp.config, splits.get("test")),
        "curve": log.curve,
        "mixes": [m._asdict() for m in collect_weights(best)] if run.variant.places else [],
        "n_docs": n_docs,
        "seconds": round(time.perf_counter() - start, 1),
        **get_origin(),
        "settings": asdict(settings),
        "config": config_hash,
    }
    sets = find_further(Path(settings.corpus))
    further = {name: _test(best, nlp.config, sets[name]) for name in sets}
    pipe: Any = best.get_pipe(settings.component)
    if "test" in splits and getattr(pipe, "predicates", "") == "given":
        pipe.predicates = "predicted"
        further[FOUND_PREDICATES] = _test(best, nlp.config, splits["test"])
    if further:
        result["further"] = further
    if gpu := get_gpu_name():
        result["gpu"] = gpu
    write_checked_json(output / f"{run.name}.json", result)
    shutil.rmtree(path, ignore_errors=True)
    return result


def train_best(nlp: Language, output: Path) -> Language:
    """Train an initialized pipeline as `spacy train` does, silently: the logger of its config has
    all that spaCy would print.

    output (Path): existing folder for model-best and model-last.
    RETURNS (Language): model-best, loaded.
    """
    train(nlp, output, stdout=io.StringIO(), stderr=io.StringIO())
    return spacy.load(output / "model-best")


def get_workplace(output: Path, run: Run) -> Path:
    """RETURNS (Path): The folder of a run's temporary files."""
    return output / f"{run.name}.partial"


def _test(nlp: Language, config: Config, path: Optional[Path]) -> Optional[Dict[str, Any]]:
    if path is None:
        return None
    # Read as dev is.
    block = {**config.interpolate()["corpora"]["dev"], "path": str(path)}
    read = spacy.registry.resolve({"corpus": block})["corpus"]
    return nlp.evaluate(list(read(nlp)))


def get_depth(weights: str) -> int:
    """weights (str): folder of a biLM; "" for the bundled one. RETURNS (int): its LSTM
    layers."""
    return (read_config(weights) if weights else BiLMConfig()).depth


def load_base(path: str) -> Config:
    """path (str): a training config. RETURNS (Config): it. RAISES (ValueError): EL232 if it
    cannot be read."""
    try:
        return util.load_config(path, interpolate=False)
    # What configparser finds wrong comes as it is, what confection does not expect, too.
    except (OSError, ValueError, LookupError, RecursionError, configparser.Error) as err:
        raise _no_config(path, err) from err


def get_lang(config: str) -> str:
    """config (str): training config; "" for a preset. RETURNS (str): its language code, "en" where
    it has none. RAISES (ValueError): as `load_base`."""
    nlp = load_base(config).get("nlp", {}) if config else {}
    return str(nlp.get("lang") or "en")


def _no_config(path: str, error: Exception) -> ValueError:
    return ValueError(Errors.EL232.format(path=path, error=show_reason(error)))


def make_run_config(run: Run, settings: RunSettings) -> Config:
    """RETURNS (Config): What a run trains. RAISES (ValueError): as `make_variant`, EL232 if the
    config of the settings cannot be read."""
    shape, loader = None, None
    if settings.weights:
        shape = read_config(settings.weights)
        loader = {"@misc": "spacy-elmo.CheckpointLoader.v1", "path": settings.weights}
    base = load_base(settings.config) if settings.config else None
    try:
        config = make_variant(
            run.variant,
            settings.component,
            lang=settings.lang,
            shape=shape,
            loader=loader,
            base=base,
            vectors=settings.vectors,
        )
    # Blocks of the file's that are no blocks, or lack what every one has.
    except (AttributeError, TypeError, LookupError) as err:
        raise _no_config(settings.config, err) from err
    for key in ("max_steps", "patience", "eval_frequency"):
        config["training"][key] = getattr(settings, key)
    # The docs are those of the settings, wherever the file has its own.
    for split in ("train", "dev"):
        block = config.get("corpora", {}).get(split, {})
        if "path" in block:
            block["path"] = f"${{paths.{split}}}"
        if f"{split}_corpus" in config["training"]:
            config["training"][f"{split}_corpus"] = f"corpora.{split}"
    config["system"]["seed"] = run.seed
    config["paths"]["dev"] = str(Path(settings.corpus) / "dev.spacy")
    return config


def hash_config(run: Run, settings: RunSettings) -> str:
    """RETURNS (str): Digest of what a run trains and how, but for paths: `RunSettings` knows files
    by their content. It changes with the presets. RAISES (ValueError): as `make_run_config`."""
    config = make_run_config(run, settings)
    parts = {key: config[key] for key in ("nlp", "components", "corpora", "training")}
    return digest(srsly.json_dumps(parts, sort_keys=True).encode("utf8"))


def use_cache(config: Config, cache: Path) -> None:
    """Let a config keep the biLM's layers of what it trains on.

    config (Config): with an "elmo"; it is changed.
    cache (Path): folder, which many runs may share.
    """
    block = config["initialize"].setdefault("components", {}).setdefault("elmo", {})
    block["activation_cache"] = {
        "@misc": "spacy-elmo.ActivationCache.v1",
        "path": str(cache),
        "dtype": "float32",
    }


def _make_config(
    run: Run, settings: RunSettings, path: Path, cache: Optional[Path], log: RunLog
) -> Config:
    config = make_run_config(run, settings)
    # A biLM that learns has no layers to keep.
    if cache is not None and run.variant.places and config["components"]["elmo"]["model"]["frozen"]:
        # Of the corpus: another one's layers would fill it.
        use_cache(config, cache / Path(settings.corpus).resolve().name)
    config["training"]["logger"] = log.register()
    config["paths"]["train"] = str(path / "train.spacy")
    return util.load_config_from_str(config.to_str(interpolate=False), interpolate=False)
