"""The config of a pretraining run, checked before anything is written."""

import json
import logging
import math
import os
from dataclasses import asdict, dataclass, field, fields
from math import ceil, isfinite
from typing import (
    Any,
    ContextManager,
    Dict,
    Iterable,
    List,
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
from torch import nn

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..errors import Errors, Warnings
from ..inference.packed_layers import DTYPES
from ..language_model.softmax import make_softmax, split_softmax
from ..language_model.vocabulary import SPECIAL_WORDS
from ..text.languages import StaticVectors, require_language
from .teachers import describe_teachers

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


INIT_PARTS = ("all", "cells", "words")


TRAIN_PARTS = ("all", "lstms")


# What no run needs, and what no machine can hold or do.
_MOST_EPOCHS = 1_000_000


_MOST_TOKENS = 1_000_000_000


_MOST_WORKERS = 512


Settings = TypeVar("Settings")


@dataclass(frozen=True)
class TrainingSettings:
    """How to train. Times are in steps unless their name says otherwise.

    seed (int): of weights, order, samples and dropout.
    max_steps (int): length of the run; 0 to follow from `max_epochs`.
    max_epochs (float): length of the run in passes over the text.
    batch_tokens (int): predictions of a direction in a step, over all processes.
    init_part (str): what is taken of the weights that the run starts from ([paths] init):
        "all"; "cells": all, for LSTMs with more cells and a projection, which begin with what
        those of the weights compute; or "words": the word encoder and the softmax, for other
        LSTMs behind them.
    train_part (str): what is trained: "all"; or "lstms", which leaves the word encoder and the
        softmax as the weights in [paths] init have them.
    accumulate (int): pieces in which each process computes its share, to save memory.
    learn_rate (float): the highest one.
    warmup_steps (int): until the highest rate.
    schedule (str): see `schedule.learn_rate_factor`.
    decay_share (float): of the schedule "trapezoid".
    clip (float): bound of the gradient's norm; 0 for none.
    dropout (float): see `LanguageModel`.
    precision (str): "fp32", "bf16", or "fp16" (GPU only), of the matrix products.
    deterministic (bool): whether a GPU may use only operations that always give the same
        bits, as a CPU does.
    state_steps (int): truncated BPTT length, with the state carried on in the order of
        reading (of several files, 16 kB of one at a time); 0 if each sequence starts from a
        zero state.
    eval_frequency (int): between two perplexities of the held-out text.
    eval_sequences (int): of the held-out text, from all over it, or its first ones if the
        state is carried on; 0 for all.
    save_frequency (int): between two checkpoints.
    patience (int): stop so long after the best held-out perplexity; 0 for never.
    log_frequency (int): between two lines.
    optimizer (Dict[str, Any]): "name", which is "adam", and arguments of torch's class.
    softmax (Dict[str, Any]): "kind", and its settings.
    teachers (Dict[str, Any]): what else to learn from, by name: "kind", and its settings.
    """

    seed: int = 0
    max_steps: int = 0
    max_epochs: float = 1.0
    batch_tokens: int = 8192
    init_part: str = "all"
    train_part: str = "all"
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
        section = "training"
        for key in (
            "batch_tokens",
            "accumulate",
            "eval_frequency",
            "save_frequency",
            "log_frequency",
        ):
            _require(section, key, getattr(self, key), 1, "at least 1")
        for key in (
            "seed",
            "max_steps",
            "learn_rate",
            "warmup_steps",
            "clip",
            "state_steps",
            "patience",
            "eval_sequences",
        ):
            _require(section, key, getattr(self, key), 0, "at least 0")
        choices = {
            "schedule": SCHEDULES,
            "precision": tuple(DTYPES),
            "init_part": INIT_PARTS,
            "train_part": TRAIN_PARTS,
        }
        for key, known in choices.items():
            if getattr(self, key) not in known:
                raise invalid(section, key, getattr(self, key), f"one of {known}")
        if not 0 <= self.decay_share <= 1:
            raise invalid(section, "decay_share", self.decay_share, "between 0 and 1")
        if not 0 <= self.dropout < 1:
            raise invalid(section, "dropout", self.dropout, "at least 0 and below 1")
        if self.max_steps == 0 and not 0 < self.max_epochs <= _MOST_EPOCHS:
            expected = f"above 0 and at most {_MOST_EPOCHS}, or max_steps"
            raise invalid(section, "max_epochs", self.max_epochs, expected)
        if self.batch_tokens > _MOST_TOKENS:
            raise invalid(section, "batch_tokens", self.batch_tokens, f"at most {_MOST_TOKENS}")
        if self.accumulate > self.batch_tokens:
            expected = f"at most the {self.batch_tokens} of batch_tokens"
            raise invalid(section, "accumulate", self.accumulate, expected)
        self.require_rows(1)

    def require_rows(self, n_ranks: int) -> None:
        """n_ranks (int): processes. RAISES (ValueError): EL336 if they and their pieces are more
        than the rows that a step of continued text has."""
        n_shares = n_ranks * self.accumulate
        n_rows = max(1, self.batch_tokens // self.state_steps) if self.state_steps else n_shares
        if n_rows < n_shares:
            text = Errors.EL336.format(
                batch_tokens=self.batch_tokens,
                state_steps=self.state_steps,
                n_rows=n_rows,
                n_shares=n_shares,
                accumulate=self.accumulate,
            )
            raise ValueError(text)

    def learn_rate_factor(self, step: int, total_steps: int) -> float:
        """step (int): steps done before this one. total_steps (int): of the whole run.
        RETURNS (float): its learning rate as a share of the highest one."""
        return learn_rate_factor(
            step,
            schedule=self.schedule,
            warmup_steps=self.warmup_steps,
            total_steps=total_steps,
            decay_share=self.decay_share,
        )

    def autocast(self, device: str) -> ContextManager[Any]:
        """device (str): "cpu" or "cuda". RETURNS (ContextManager[Any]): in which products
        have the precision."""
        dtype = DTYPES[self.precision]
        return torch.autocast(device, dtype, enabled=dtype != torch.float32)


@dataclass(frozen=True)
class CorpusSettings:
    """What to train on.

    train (str): a file, folder or glob, or "-" for what comes through the pipe.
    dev (str): held-out text, the same; "" for none.
    sources (Dict[str, Dict[str, Any]]): instead of `train`, several of them, each with
        "path" and "weight", its share of the characters.
    max_tokens (int): most tokens of a sequence.
    window_share (float): share of the text cut into windows of several sentences.
    cut (str): how the rest is cut: "sentences" or "lines".
    buffer_tokens (int): tokens that are shuffled together.
    n_workers (int): processes that tokenize; 0 for none but the trainer's own.
    vocabulary (str): a file with the words to predict; "" to count them.
    size (int): most words of the vocabulary; 0 for no limit.
    min_count (int): least occurrences of a word of the vocabulary.
    include (str): a file with words that must be among those that are counted.
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
        section = "corpus"
        _require(section, "max_tokens", self.max_tokens, 2, "at least 2")
        _require(section, "buffer_tokens", self.buffer_tokens, 1, "at least 1")
        for key in ("n_workers", "size", "min_count"):
            _require(section, key, getattr(self, key), 0, "at least 0")
        for key, most in (("buffer_tokens", _MOST_TOKENS), ("n_workers", _MOST_WORKERS)):
            if getattr(self, key) > most:
                raise invalid(section, key, getattr(self, key), f"at most {most}")
        if not 0 <= self.window_share <= 1:
            raise invalid(section, "window_share", self.window_share, "between 0 and 1")
        if self.cut not in ("sentences", "lines"):
            raise invalid(section, "cut", self.cut, "sentences or lines")
        if not self.train and not self.sources:
            raise invalid(section, "train", self.train, "a path; set --paths.train")
        if self.train and self.sources:
            raise invalid(section, "train", self.train, "none beside [corpus.sources]")
        if self.include and self.vocabulary:
            raise invalid(section, "include", self.include, "none beside [corpus] vocabulary")


def make_settings(cls: Type[Settings], block: Dict[str, Any], section: str) -> Settings:
    """Check a section of a config and make its settings.

    cls (Type[Settings]): a dataclass of settings.
    block (Dict[str, Any]): the section.
    section (str): its name, for messages.
    RETURNS (Settings): the settings, with defaults for what is missing.
    RAISES (ValueError): EL090 for an unknown key, EL091 for a value of a wrong type or
        range.
    """
    hints = get_type_hints(cls)
    known = [f.name for f in fields(cls)]  # type: ignore[arg-type]
    check_keys(block, known, section)
    values: Dict[str, Any] = {}
    for key, value in block.items():
        types = _types(hints[key])
        if type(value) is int and float in types and int not in types:
            value = float(value)
        if type(value) is list and tuple in types:
            value = tuple(value)
        if value is None and types == [str]:
            value = ""
        if type(value) not in types:
            expected = " or ".join(t.__name__ for t in types)
            raise invalid(section, key, value, expected)
        if type(value) is float and not isfinite(value):
            raise invalid(section, key, value, "a finite number")
        if type(value) is int and not abs(value) < 1 << 63:
            raise invalid(section, key, value, "a number of at most 64 bits")
        values[key] = value
    return cls(**values)


def check_keys(keys: Iterable[str], known: Sequence[str], section: str) -> None:
    """keys (Iterable[str]): of a section. known (Sequence[str]): those that it may have.
    section (str): its name. RAISES (ValueError): EL090 for another key."""
    for key in keys:
        if key not in known:
            raise ValueError(Errors.EL090.format(section=section, key=key, known=", ".join(known)))


def _types(hint: Any) -> List[type]:
    """The classes that a value may have: those of Optional[float] are two."""
    parts = get_args(hint) if get_origin(hint) is Union else (hint,)
    return [get_origin(part) or part for part in parts]


def _require(section: str, key: str, value: float, least: float, expected: str) -> None:
    if value < least:
        raise invalid(section, key, value, expected)


def invalid(section: str, key: str, value: Any, expected: str) -> ValueError:
    """section, key (str): where. value (Any): what is there. expected (str): what could be.
    RETURNS (ValueError): EL091, to be raised."""
    return ValueError(Errors.EL091.format(section=section, key=key, value=value, expected=expected))


NAME = "adam"


# Its two moments of each weight.
NUMBERS_PER_WEIGHT = 2


def make_optimizer(module: nn.Module, block: Mapping[str, Any]) -> torch.optim.Optimizer:
    """Make the optimizer for the weights of a module that have a gradient.

    module (nn.Module): what to train.
    block (Mapping[str, Any]): [training.optimizer]: "name", and arguments of torch's class,
        such as "betas".
    RETURNS (torch.optim.Optimizer): with a learning rate that the loop sets.
    RAISES (ValueError): EL091 for another name than "adam", EL092 for arguments that it does
        not have.
    """
    arguments = dict(block)
    name = arguments.pop("name", NAME)
    if name != NAME:
        raise invalid("training.optimizer", "name", name, NAME)
    # One pass over all weights instead of one for each: several times faster.
    if "foreach" not in arguments:
        arguments.setdefault("fused", True)
    try:
        trained = [weight for weight in module.parameters() if weight.requires_grad]
        return torch.optim.Adam(trained, lr=0.0, **arguments)
    except (TypeError, ValueError, RuntimeError) as err:
        raise ValueError(Errors.EL092.format(name=NAME, error=err)) from err


def try_optimizer(block: Mapping[str, Any]) -> None:
    """Do a step on a few weights: torch checks some arguments only there.

    block (Mapping[str, Any]): as for `make_optimizer`.
    RAISES (ValueError): EL091 and EL092 for a block that cannot be used.
    """
    module = nn.Linear(1, 1)
    optimizer = make_optimizer(module, block)
    module(torch.ones(1, 1)).sum().backward()
    try:
        optimizer.step()
    except Exception as err:
        raise ValueError(Errors.EL092.format(name=NAME, error=err)) from err


def make_shape(
    block: Mapping[str, Any], n_words: int, vectors: Optional[StaticVectors] = None
) -> BiLMConfig:
    """block (Mapping[str, Any]): [bilm]. n_words (int): words to predict. vectors
    (Optional[StaticVectors]): for `input = "vectors"`; None if they are not read yet.
    RETURNS (BiLMConfig): the shape, sizes of tables filled in. RAISES (ValueError): EL010,
    EL090 and EL091 for an impossible one."""
    sizes: Dict[str, Any] = {}
    if block.get("input") == "words":
        sizes = {"n_words": n_words - len(SPECIAL_WORDS)}
    if block.get("input") == "vectors":
        table_shape = (1, 1) if vectors is None else vectors.vectors.shape
        sizes = dict(zip(("n_words", "vector_width"), table_shape))
    try:
        return make_settings(BiLMConfig, {**block, **sizes}, "bilm")
    except TypeError as err:
        expected = "[[width, number], ...]"
        raise invalid("bilm", "filters", block.get("filters"), expected) from err


def require_memory(shape: BiLMConfig, n_words: int) -> None:
    """shape (BiLMConfig): from `make_shape`. n_words (int): words to predict. RAISES
    (ValueError): EL160 if the machine cannot hold what is trained."""
    with torch.device("meta"):
        n_weights = sum(weight.numel() for weight in BiLM(shape).parameters())
    n_weights += n_words * (shape.direction_width + 1)
    # The weight, its gradient and the state of the optimizer, 4 bytes each.
    needed, total = 4 * (2 + NUMBERS_PER_WEIGHT) * n_weights, _read_total_memory()
    if total and needed > total:
        raise ValueError(
            Errors.EL160.format(n_weights=n_weights, needed=needed / 1e9, total=total / 1e9)
        )


logger = logging.getLogger("spacy_elmo")


# Of the softmax whose settings are checked: an adaptive one divides its width.
_CHECKED_WIDTH, _CHECKED_WORDS = 16, 1_000_000


@dataclass(frozen=True)
class RunConfig:
    """A checked config.

    paths (Dict[str, Any]): [paths].
    nlp (Dict[str, Any]): [nlp]: "lang", and "tokenizer" or nothing.
    bilm (Dict[str, Any]): [bilm].
    corpus (CorpusSettings): [corpus].
    training (TrainingSettings): [training].
    teachers (Dict[str, Any]): what [training.teachers] are, wherever their files lie.
    """

    paths: Dict[str, Any]
    nlp: Dict[str, Any]
    bilm: Dict[str, Any]
    corpus: CorpusSettings
    training: TrainingSettings
    teachers: Dict[str, Any]

    @classmethod
    def check(cls, config: Dict[str, Any]) -> "RunConfig":
        """config (Dict[str, Any]): all sections, interpolated. RETURNS (RunConfig): the
        same, checked. RAISES (ValueError): EL090 for an unknown key, EL091 for a wrong
        value, EL073 for the softmax, EL092 for the optimizer, EL160 for a model that the
        machine cannot hold, EL161 for an unknown language, EL180 to EL184 for a teacher."""
        _check_paths(config["paths"])
        _check_language(config["nlp"])
        training = make_settings(TrainingSettings, config["training"], "training")
        corpus = make_settings(CorpusSettings, config["corpus"], "corpus")
        if corpus.buffer_tokens < training.batch_tokens:
            expected = f"at least [training] batch_tokens, {training.batch_tokens}"
            raise invalid("corpus", "buffer_tokens", corpus.buffer_tokens, expected)
        if training.patience and not corpus.dev:
            expected = "0 without a held-out text (paths.dev)"
            raise invalid("training", "patience", training.patience, expected)
        _check_part(training.train_part, config["paths"], corpus)
        shape = make_shape(config["bilm"], len(SPECIAL_WORDS))
        require_memory(shape, len(SPECIAL_WORDS))
        # Some mistakes show only when these are made: now, not after hours of counting.
        _try_softmax(training.softmax, corpus)
        try_optimizer(training.optimizer)
        teachers = describe_teachers(
            training.teachers, shape.depth, training.state_steps, training.train_part
        )
        return cls(config["paths"], config["nlp"], config["bilm"], corpus, training, teachers)

    def require_device(self, device: str) -> None:
        """device (str): "cpu" or "cuda". RAISES (ValueError): EL091 if it is not there, or
        does not have the precision."""
        if device not in ("cpu", "cuda") or (device == "cuda" and not torch.cuda.is_available()):
            raise invalid("training", "device", device, "cpu, or cuda where torch finds a GPU")
        if device == "cpu" and self.training.precision == "fp16":
            raise invalid("training", "precision", "fp16", "fp32 or bf16 on a CPU")

    def count_steps(self, n_targets: int) -> int:
        """n_targets (int): tokens and ends of sequences of the text; not used if `max_steps`
        is given. RETURNS (int): length of the whole run."""
        t = self.training
        # Of a stream, a step has whole rows.
        n_rows = max(1, t.batch_tokens // t.state_steps) if t.state_steps else 0
        n_targets_of_step = n_rows * t.state_steps or t.batch_tokens
        return t.max_steps or max(1, ceil(t.max_epochs * n_targets / n_targets_of_step))

    def warn_of_length(self, n_targets: int) -> None:
        """n_targets (int): of the text, or of a part that is not less than a step. Warns with
        WL028 of a run that ends while its learning rate still rises, and with WL029 of a
        text that is less than a step."""
        t, total_steps = self.training, self.count_steps(n_targets)
        if total_steps <= t.warmup_steps:
            share = t.learn_rate_factor(total_steps - 1, total_steps)
            logger.warning(
                Warnings.WL028.format(
                    warmup_steps=t.warmup_steps, total_steps=total_steps, share=share
                )
            )
        if n_targets < t.batch_tokens:
            logger.warning(Warnings.WL029.format(n_targets=n_targets, batch_tokens=t.batch_tokens))

    def identity(self, text: Dict[str, Any], n_words: int, shape: BiLMConfig) -> Dict[str, Any]:
        """text (Dict[str, Any]): from `describe_text`. n_words (int): words to predict.
        shape (BiLMConfig): the biLM. RETURNS (Dict[str, Any]): what makes two runs the
        same, in JSON's types: where it differs, a checkpoint is of another run."""
        training = asdict(self.training)
        kept = ("seed", "batch_tokens", "state_steps", "optimizer", "softmax")
        identity = {
            "bilm": shape.to_dict(),
            "text": text,
            "training": {key: training[key] for key in kept},
            "teachers": self.teachers,
            "n_words": n_words,
            # Rows of unequal length were another text for the same numbers.
            "rows": "equal" if self.training.state_steps else "",
            "train_part": "" if self.training.train_part == "all" else self.training.train_part,
        }
        return json.loads(json.dumps(identity))


def _check_part(part: str, paths: Mapping[str, Any], corpus: CorpusSettings) -> None:
    """What is not trained has to be there, and words that were counted would have no row in the
    softmax. RAISES (ValueError): EL091 without either."""
    if part == "all":
        return
    if not paths.get("init"):
        raise invalid("training", "train_part", part, '"all" without weights in paths.init')
    if not corpus.vocabulary:
        expected = f'the vocab.txt of these weights with train_part = "{part}"'
        raise invalid("corpus", "vocabulary", corpus.vocabulary, expected)


def _try_softmax(block: Dict[str, Any], corpus: CorpusSettings) -> None:
    """RAISES (ValueError): EL072 and EL073 for settings that cannot be used."""
    kind, arguments = split_softmax(block)
    n_words = _CHECKED_WORDS
    # Without any word of its own, a vocabulary is refused for that.
    if corpus.size > len(SPECIAL_WORDS) and not corpus.vocabulary and not corpus.include:
        n_words = corpus.size
    with torch.device("meta"):  # shapes without memory
        make_softmax(kind, _CHECKED_WIDTH, n_words, **arguments)


def _check_paths(paths: Mapping[str, Any]) -> None:
    for key, path in paths.items():
        if path is not None and not isinstance(path, str):
            raise invalid("paths", key, path, "a path, or null for none; ./2024 for a number")
    if paths.get("init_weights") and not paths.get("init"):
        expected = "none without paths.init, the options.json that belongs to it"
        raise invalid("paths", "init_weights", paths["init_weights"], expected)


def _check_language(nlp: Mapping[str, Any]) -> None:
    check_keys(nlp, ("lang", "tokenizer"), "nlp")
    require_language(nlp.get("lang", ""))
    tokenizer = nlp.get("tokenizer")
    if tokenizer is not None and not isinstance(tokenizer, dict):
        raise invalid("nlp", "tokenizer", tokenizer, "a block [nlp.tokenizer]")


def _read_total_memory() -> int:
    """Read how many bytes of memory the machine has; 0 if unknown."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no such function
        return 0
