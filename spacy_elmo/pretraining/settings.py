"""The sections [corpus] and [training] of a pretraining config."""

from dataclasses import dataclass, field, fields
from math import isfinite
from typing import (
    Any,
    ContextManager,
    Dict,
    Iterable,
    List,
    Sequence,
    Type,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import torch

from ..errors import Errors
from ..inference.packed_layers import DTYPES
from .schedule import SCHEDULES, learn_rate_factor

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
