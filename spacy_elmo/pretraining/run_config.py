"""`RunConfig`: the config of a pretraining run, checked before anything is written."""

import json
import logging
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any, Dict, Mapping

import torch

from ..bilm.config import BiLMConfig
from ..errors import Warnings
from ..language_model.softmax import make_softmax, split_softmax
from ..language_model.teacher import describe_teachers
from ..language_model.vocabulary import SPECIAL_WORDS
from ..text.languages import require_language
from .optimizers import try_optimizer
from .run_model import make_shape, require_memory
from .settings import CorpusSettings, TrainingSettings, check_keys, invalid, make_settings

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
