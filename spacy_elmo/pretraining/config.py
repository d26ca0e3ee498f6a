"""The config of a pretraining run, checked before anything is written."""

import configparser
import json
import logging
import math
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import (
    Any,
    ContextManager,
    Dict,
    Iterable,
    Mapping,
    Optional,
    Sequence,
    Type,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import torch
from confection import Config, ConfigValidationError
from torch import nn

from ..bilm.config import BiLMConfig
from ..bilm.weights import without_memory
from ..errors import Errors, Warnings
from ..files import read_file
from ..inference.packed_layers import DTYPES
from ..language_model.softmax import make_softmax, split_softmax
from ..language_model.vocabulary import SPECIAL_WORDS
from ..text.languages import StaticVectors, require_language
from ..utils import read_template
from .teachers import describe_teachers

logger = logging.getLogger("spacy_elmo")

PRETRAINING_PRESETS = ("standard", "toy", "kim_5m", "kim_19m")
_SECTIONS = ("paths", "nlp", "bilm", "corpus", "training")
_MOST_BYTES = 10_000_000
# Languages whose words no space separates: they need their own tokenizers.
_WITHOUT_SPACES = ("ja", "th", "zh")
SCHEDULES = ("trapezoid", "cosine")
_LEAST_TRAINING = {
    **dict.fromkeys(("batch_tokens", "accumulate"), 1),
    **dict.fromkeys(("eval_frequency", "save_frequency", "log_frequency"), 1),
    **dict.fromkeys(("seed", "max_steps", "learn_rate", "warmup_steps", "clip"), 0),
    **dict.fromkeys(("state_steps", "patience", "eval_sequences"), 0),
}
# The softmax that is made to check settings: an adaptive one divides its width.
_CHECKED_WIDTH, _CHECKED_WORDS = 16, 1_000_000
Settings = TypeVar("Settings")


@dataclass(frozen=True)
class TrainingSettings:
    """The section [training]. Times are in steps unless their name says otherwise.

    seed (int): of weights, order, samples and dropout.
    max_steps (int): length of the run; 0 to follow from `max_epochs`.
    max_epochs (float): length of the run in passes over the text.
    batch_tokens (int): predictions of a direction in a step, over all processes.
    accumulate (int): pieces in which each process computes its share, to save memory.
    learn_rate (float): the highest one.
    warmup_steps (int): until the highest rate.
    schedule (str): "trapezoid" or "cosine". Both warm up linearly. Then "trapezoid" stays
        constant and falls linearly to 0 over the last part; "cosine" falls to 0 at the end.
    decay_share (float): of a trapezoid, the part of all steps in which it falls; 0 for a
        constant rate, 1 for a linear decay.
    clip (float): bound of the gradient's norm; 0 for none.
    dropout (float): see `LanguageModel`.
    precision (str): "fp32", "bf16", or "fp16" (GPU only), of the matrix products.
    deterministic (bool): whether a GPU may use only operations that always give the same
        bits, as a CPU does.
    state_steps (int): truncated BPTT length, with the state carried on in the order of
        reading (of several files, 16 kB of one at a time); 0 if each sequence starts from a
        zero state.
    eval_frequency (int): steps between two perplexities of the held-out text.
    eval_sequences (int): sequences of the held-out text, from all over it, or its first ones
        if the state is carried on; 0 for all.
    save_frequency (int): steps between two checkpoints.
    patience (int): steps after the best held-out perplexity until the run stops; 0 for never.
    log_frequency (int): steps between two lines.
    optimizer (Dict[str, Any]): "name", which is "adam", and arguments of torch's class.
    softmax (Dict[str, Any]): "kind", and its settings.
    teachers (Dict[str, Any]): further losses by name: "kind", and its settings.
    """

    seed: int = 0
    max_steps: int = 0
    max_epochs: float = 1.0
    batch_tokens: int = 8192
    accumulate: int = 1
    learn_rate: float = 0.002
    warmup_steps: int = 200
    schedule: str = "trapezoid"
    decay_share: float = 0.3
    clip: float = 1.0
    dropout: float = 0.0
    precision: str = "fp32"
    deterministic: bool = False
    state_steps: int = 0
    eval_frequency: int = 1000
    eval_sequences: int = 2000
    save_frequency: int = 500
    patience: int = 0
    log_frequency: int = 20
    optimizer: Dict[str, Any] = field(default_factory=lambda: {"name": "adam"})
    softmax: Dict[str, Any] = field(default_factory=lambda: {"kind": "sampled"})
    teachers: Dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, least in _LEAST_TRAINING.items():
            _require_least(self, "training", key, least)
        for key, known in (("schedule", SCHEDULES), ("precision", tuple(DTYPES))):
            if getattr(self, key) not in known:
                raise invalid("training", key, getattr(self, key), f"one of {known}")
        if not 0 <= self.decay_share <= 1:
            raise invalid("training", "decay_share", self.decay_share, "between 0 and 1")
        if not 0 <= self.dropout < 1:
            raise invalid("training", "dropout", self.dropout, "at least 0 and below 1")
        if self.max_steps == 0 and self.max_epochs <= 0:
            raise invalid("training", "max_epochs", self.max_epochs, "above 0, or max_steps")
        self.require_rows(1)

    @property
    def n_rows(self) -> int:
        """Rows of a step whose state is carried on; 0 without `state_steps`."""
        return max(1, self.batch_tokens // self.state_steps) if self.state_steps else 0

    def require_rows(self, n_processes: int) -> None:
        """Raise EL091 if some pieces of a step would be empty."""
        n_shares = n_processes * self.accumulate
        if n_shares > (self.n_rows or self.batch_tokens):
            per_share = max(1, self.state_steps)
            expected = f"at least {n_shares * per_share}: {per_share} for each of {n_shares} pieces"
            if n_processes > 1:
                expected += f" of {n_processes} processes"
            raise invalid("training", "batch_tokens", self.batch_tokens, expected)

    def learn_rate_factor(self, step: int, total_steps: int) -> float:
        """Learning rate after `step` steps, divided by the highest one; above 0 during the run."""
        if step < self.warmup_steps:
            return (step + 1) / (self.warmup_steps + 1)
        if self.schedule == "cosine":
            done = (step - self.warmup_steps) / max(1, total_steps - self.warmup_steps)
            return 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))
        left = (total_steps - step) / max(1.0, self.decay_share * total_steps)
        return max(0.0, min(1.0, left))

    def autocast(self, device: str) -> ContextManager[Any]:
        """Compute matrix products in the precision."""
        dtype = DTYPES[self.precision]
        return torch.autocast(device, dtype, enabled=dtype != torch.float32)

    def make_optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        """Make Adam for a module, with a learning rate that the loop sets (EL091)."""
        arguments = dict(self.optimizer)
        name = arguments.pop("name", "adam")
        if name != "adam":
            raise invalid("training.optimizer", "name", name, "adam")
        # A fused step is several times faster.
        if "foreach" not in arguments:
            arguments.setdefault("fused", True)
        try:
            return torch.optim.Adam(module.parameters(), lr=0.0, **arguments)
        except (TypeError, ValueError, RuntimeError) as err:
            expected = f"arguments of torch.optim.Adam ({err})"
            raise invalid("training", "optimizer", self.optimizer, expected) from err


@dataclass(frozen=True)
class CorpusSettings:
    """The section [corpus].

    train (str): a file, folder or glob, or "-" for standard input.
    dev (str): held-out text, the same; "" for none.
    sources (Dict[str, Dict[str, Any]]): instead of `train`, several of them, each with
        "path" and "weight", its share of the characters.
    max_tokens (int): most tokens of a sequence.
    window_share (float): share of the text cut into windows of several sentences.
    cut (str): how the rest is cut: "sentences" or "lines".
    buffer_tokens (int): tokens that are shuffled together.
    n_workers (int): processes that tokenize; 0 to tokenize in the trainer.
    vocabulary (str): a file with the words to predict; "" to count them.
    size (int): most words of the vocabulary; 0 for no limit.
    min_count (int): least occurrences of a word of the vocabulary.
    include (str): a file with words that are added to those that are counted.
    """

    train: str = ""
    dev: str = ""
    sources: Dict[str, Dict[str, Any]] = field(default_factory=dict)
    max_tokens: int = 128
    window_share: float = 0.25
    cut: str = "sentences"
    buffer_tokens: int = 1_000_000
    n_workers: int = 0
    vocabulary: str = ""
    size: int = 30_000
    min_count: int = 2
    include: str = ""

    def __post_init__(self) -> None:
        _require_least(self, "corpus", "max_tokens", 2)
        _require_least(self, "corpus", "buffer_tokens", 1)
        for key in ("n_workers", "size", "min_count"):
            _require_least(self, "corpus", key, 0)
        if not 0 <= self.window_share <= 1:
            raise invalid("corpus", "window_share", self.window_share, "between 0 and 1")
        if self.cut not in ("sentences", "lines"):
            raise invalid("corpus", "cut", self.cut, "sentences or lines")
        if not self.train and not self.sources:
            raise invalid("corpus", "train", self.train, "a path; set --paths.train")
        if self.train and self.sources:
            raise invalid("corpus", "train", self.train, "no value with [corpus.sources]")
        if self.include and self.vocabulary:
            raise invalid("corpus", "include", self.include, "no value with [corpus] vocabulary")


def make_settings(cls: Type[Settings], block: Dict[str, Any], section: str) -> Settings:
    """Make the settings of a section, with defaults for missing keys (EL090 for an unknown key,
    EL091 for a value of a wrong type or range)."""
    hints = get_type_hints(cls)
    check_keys(block, [f.name for f in fields(cls)], section)  # type: ignore[arg-type]
    values: Dict[str, Any] = {}
    for key, value in block.items():
        hint = hints[key]
        # Two types for Optional[float].
        parts = get_args(hint) if get_origin(hint) is Union else (hint,)
        types = [get_origin(part) or part for part in parts]
        if type(value) is int and float in types and int not in types:
            value = float(value)
        if type(value) is list and tuple in types:
            value = tuple(value)
        if value is None and types == [str]:
            value = ""
        if type(value) not in types:
            raise invalid(section, key, value, " or ".join(t.__name__ for t in types))
        if type(value) is float and not math.isfinite(value):
            raise invalid(section, key, value, "a finite number")
        values[key] = value
    return cls(**values)


def check_keys(keys: Iterable[str], known: Sequence[str], section: str) -> None:
    """Raise EL090 for a key that a section does not have."""
    for key in keys:
        if key not in known:
            raise ValueError(Errors.EL090.format(section=section, key=key, known=", ".join(known)))


def invalid(section: str, key: str, value: Any, expected: str) -> ValueError:
    """Make the error EL091 for a value of a section."""
    return ValueError(Errors.EL091.format(section=section, key=key, value=value, expected=expected))


def _require_least(settings: Any, section: str, key: str, least: int) -> None:
    if getattr(settings, key) < least:
        raise invalid(section, key, getattr(settings, key), f"at least {least}")


def make_shape(
    block: Mapping[str, Any], n_words: int, vectors: Optional[StaticVectors] = None
) -> BiLMConfig:
    """Make the shape of the biLM from [bilm], for words to predict and perhaps given vectors, which
    may not have been read yet (EL010, EL090, EL091)."""
    sizes: Dict[str, Any] = {}
    if block.get("input") == "words":
        sizes = {"n_words": n_words - len(SPECIAL_WORDS)}
    if block.get("input") == "vectors":
        table_shape = (1, 1) if vectors is None else vectors.vectors.shape
        sizes = dict(zip(("n_words", "vector_width"), table_shape))
    try:
        return make_settings(BiLMConfig, {**block, **sizes}, "bilm")
    except TypeError as err:
        raise invalid("bilm", "filters", block.get("filters"), "[[width, number], ...]") from err


@dataclass(frozen=True)
class RunConfig:
    """The sections of a checked config, and descriptions of the teachers without their paths."""

    paths: Dict[str, Any]
    nlp: Dict[str, Any]
    bilm: Dict[str, Any]
    corpus: CorpusSettings
    training: TrainingSettings
    teachers: Dict[str, Any]

    @classmethod
    def check(cls, config: Dict[str, Any]) -> "RunConfig":
        """Check all sections, interpolated, before hours of counting (EL090 for an unknown key,
        EL091 for a wrong value, EL073 for the softmax, EL161 for an unknown language, EL181 to
        EL184 for a teacher)."""
        paths, nlp = config["paths"], config["nlp"]
        for key, path in paths.items():
            if path is not None and not isinstance(path, str):
                expected = "a path, or null for none; ./2024 for a number"
                raise invalid("paths", key, path, expected)
        if paths.get("init_weights") and not paths.get("init"):
            expected = "no value without paths.init, the options.json that belongs to it"
            raise invalid("paths", "init_weights", paths["init_weights"], expected)
        check_keys(nlp, ("lang", "tokenizer"), "nlp")
        require_language(nlp.get("lang", ""))
        tokenizer = nlp.get("tokenizer")
        if tokenizer is not None and not isinstance(tokenizer, dict):
            raise invalid("nlp", "tokenizer", tokenizer, "a block [nlp.tokenizer]")
        training = make_settings(TrainingSettings, config["training"], "training")
        corpus = make_settings(CorpusSettings, config["corpus"], "corpus")
        if corpus.buffer_tokens < training.batch_tokens:
            expected = f"at least [training] batch_tokens, {training.batch_tokens}"
            raise invalid("corpus", "buffer_tokens", corpus.buffer_tokens, expected)
        if training.patience and not corpus.dev:
            expected = "0 without a held-out text (paths.dev)"
            raise invalid("training", "patience", training.patience, expected)
        shape = make_shape(config["bilm"], len(SPECIAL_WORDS))
        kind, arguments = split_softmax(training.softmax)
        n_words = _CHECKED_WORDS
        if corpus.size > len(SPECIAL_WORDS) and not corpus.vocabulary and not corpus.include:
            n_words = corpus.size
        with without_memory():
            make_softmax(kind, _CHECKED_WIDTH, n_words, **arguments)
        training.make_optimizer(nn.Linear(1, 1))
        teachers = describe_teachers(training.teachers, shape.depth, training.state_steps)
        return cls(paths, nlp, config["bilm"], corpus, training, teachers)

    def require_device(self, device: str) -> None:
        """Raise EL091 if the device ("cpu" or "cuda") is missing or lacks the precision."""
        if device not in ("cpu", "cuda") or (device == "cuda" and not torch.cuda.is_available()):
            raise invalid("training", "device", device, "cpu, or cuda where torch finds a GPU")
        if device == "cpu" and self.training.precision == "fp16":
            raise invalid("training", "precision", "fp16", "fp32 or bf16 on a CPU")

    def count_steps(self, n_targets: int) -> int:
        """Length of the whole run, for a text of `n_targets` tokens and ends of sequences."""
        t = self.training
        n_targets_of_step = t.n_rows * t.state_steps or t.batch_tokens
        return t.max_steps or max(1, math.ceil(t.max_epochs * n_targets / n_targets_of_step))

    def warn_of_length(self, n_targets: int) -> None:
        """Warn of a run that ends during its warm-up (WL028), and of a text (or the part of it that
        was counted) that is shorter than a step (WL029)."""
        t, total_steps = self.training, self.count_steps(n_targets)
        if total_steps <= t.warmup_steps:
            values = {"warmup_steps": t.warmup_steps, "total_steps": total_steps}
            share = t.learn_rate_factor(total_steps - 1, total_steps)
            logger.warning(Warnings.WL028.format(**values, share=share))
        if n_targets < t.batch_tokens:
            logger.warning(Warnings.WL029.format(n_targets=n_targets, batch_tokens=t.batch_tokens))

    def identity(self, text: Dict[str, Any], shape: BiLMConfig) -> Dict[str, Any]:
        """Collect what has to be equal in a checkpoint of this run, in JSON types. The shape is
        without the size of a word table."""
        training = asdict(self.training)
        kept = ("seed", "batch_tokens", "state_steps", "optimizer", "softmax")
        identity = {
            "bilm": shape.to_dict(),
            "text": text,
            "training": {key: training[key] for key in kept},
            "teachers": self.teachers,
        }
        return json.loads(json.dumps(identity))


def load_config(path: Path, overrides: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
    """Read the sections of a config, interpolated. Missing keys are taken from the template; the
    blocks [nlp.tokenizer], [training.optimizer] and [training.softmax] are replaced as a whole.
    Another softmax in `overrides`, such as {"training.seed": 1}, starts without the settings of the
    one in the file. RAISES (ValueError): EL098 if it is not a config, EL090 for an unused path,
    EL100 to EL103 if it cannot be read."""
    overrides = dict(overrides or {})
    try:
        given = Config().from_str(read_file(path, _MOST_BYTES).decode("utf-8"), interpolate=False)
        unknown = [section for section in given if section not in _SECTIONS]
        if unknown:
            raise configparser.Error(f"[{unknown[0]}]")
        config = read_template("pretrain")
        known_paths = tuple(config["paths"])
        _overlay(config, given)
        if "nlp" in given and "tokenizer" not in given["nlp"]:
            del config["nlp"]["tokenizer"]
        kind = overrides.get("training.softmax.kind", config["training"]["softmax"].get("kind"))
        if kind != config["training"]["softmax"].get("kind"):
            config["training"]["softmax"] = {"kind": kind}
        text = config.to_str()
        loaded = dict(Config().from_str(text, overrides=overrides))
    # confection raises KeyError and RecursionError for impossible references.
    except (ConfigValidationError, configparser.Error, ValueError, KeyError, RecursionError) as err:
        if str(err).startswith("[EL"):
            raise
        known = ", ".join(_SECTIONS)
        raise ValueError(Errors.EL098.format(path=path, error=err, known=known)) from err
    unused = [key for key in loaded["paths"] if f"${{paths.{key}}}" not in text]
    check_keys(unused, known_paths, "paths")
    return loaded


def make_pretraining_config(
    preset: str = "standard",
    *,
    lang: str = "en",
    tokenizer: Optional[Dict[str, Any]] = None,
    shape: Optional[BiLMConfig] = None,
    init: Optional[Path] = None,
    init_weights: Optional[Path] = None,
) -> Config:
    """Make a pretraining config of a preset, not interpolated. `shape` replaces that of the preset;
    `init` (with `init_weights`, if it is an options.json) are weights to start from. The tokenizer
    {} is that of the language, None the one of the preset. RAISES (ValueError): EL060 for an
    unknown preset, EL161 for an unknown language."""
    require_language(lang)
    if preset not in PRETRAINING_PRESETS:
        known = ", ".join(PRETRAINING_PRESETS)
        raise ValueError(Errors.EL060.format(preset=preset, presets=known))
    config = read_template("pretrain")
    if preset != "standard":
        _overlay(config, read_template(preset))
    config["nlp"]["lang"] = lang
    if tokenizer is None and lang in _WITHOUT_SPACES:
        tokenizer = {}
    if tokenizer:
        config["nlp"]["tokenizer"] = tokenizer
    elif tokenizer is not None:
        del config["nlp"]["tokenizer"]
    if shape is not None:
        config["bilm"].update(shape.to_dict())
    for key, path in (("init", init), ("init_weights", init_weights)):
        if path is not None:
            config["paths"][key] = str(path)
    return config


def _overlay(config: Config, given: Config) -> None:
    """Replace the keys that are given. A block below a section is one key."""
    for section, block in given.items():
        config.setdefault(section, {}).update(block)
