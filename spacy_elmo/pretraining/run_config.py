"""The parts of a pretraining run that its config describes: text, shape, model."""

import json
import logging
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import torch

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..checkpoints.checkpoint_files import CheckpointFiles
from ..checkpoints.formats import find_reader
from ..errors import Errors, Warnings
from ..inference.speed import read_total_memory
from ..language_model.evaluation import sample
from ..language_model.objective import LanguageModel
from ..language_model.softmax import make_softmax, split_softmax
from ..language_model.teacher import TeacherContext, describe_teachers, make_teachers
from ..language_model.vocabulary import SPECIAL_WORDS, Vocabulary
from ..text.corpus import Corpus, cutter_maker, open_sources, read_sequences
from ..text.languages import require_language
from ..text.static_vectors import StaticVectors, read_static_vectors
from .optimizers import NUMBERS_PER_WEIGHT, try_optimizer
from .schedule import learn_rate_factor
from .settings import CorpusSettings, TrainingSettings, check_keys, invalid, make_settings

logger = logging.getLogger("spacy_elmo")

# Of a softmax that is made to check its settings: an adaptive one divides it.
_CHECKED_WIDTH = 16


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
        value, EL160 for a model that the machine cannot hold, EL161 for an unknown
        language, EL180 to EL182 for a teacher."""
        _check_paths(config["paths"])
        _check_language(config["nlp"])
        training = make_settings(TrainingSettings, config["training"], "training")
        checked = cls(
            config["paths"],
            config["nlp"],
            config["bilm"],
            make_settings(CorpusSettings, config["corpus"], "corpus"),
            training,
            {},
        )
        if checked.training.patience and not checked.corpus.dev:
            patience = checked.training.patience
            raise invalid("training", "patience", patience, "0 without a held-out text (paths.dev)")
        shape = checked.make_shape(Vocabulary(SPECIAL_WORDS), None, n_words=1, vector_width=1)
        checked.require_memory(shape, len(SPECIAL_WORDS))
        # What is wrong with these is known only when they are made: now, not after hours
        # of counting.
        kind, arguments = split_softmax(checked.training.softmax)
        make_softmax(kind, _CHECKED_WIDTH, 1_000_000, **arguments)
        try_optimizer(checked.training.optimizer)
        teachers = describe_teachers(training.teachers, shape.depth, training.state_steps)
        return replace(checked, teachers=teachers)

    def require_device(self, device: str) -> None:
        """device (str): "cpu" or "cuda". RAISES (ValueError): EL091 if it is not there, or
        does not have the precision."""
        if device not in ("cpu", "cuda") or (device == "cuda" and not torch.cuda.is_available()):
            raise invalid("training", "device", device, "cpu, or cuda where torch finds a GPU")
        if device == "cpu" and self.training.precision == "fp16":
            raise invalid("training", "precision", "fp16", "fp32 or bf16 on a CPU")

    def require_memory(self, shape: BiLMConfig, n_words: int) -> None:
        """shape (BiLMConfig): from `make_shape`. n_words (int): words to predict. RAISES
        (ValueError): EL160 if the machine cannot hold what is trained."""
        with torch.device("meta"):
            n_weights = sum(weight.numel() for weight in BiLM(shape).parameters())
        n_weights += n_words * (shape.direction_width + 1)
        # The weight and its gradient, 4 bytes each, and what the optimizer remembers.
        needed, total = 4 * (2 + NUMBERS_PER_WEIGHT) * n_weights, read_total_memory()
        if total and needed > total:
            raise ValueError(
                Errors.EL160.format(n_weights=n_weights, needed=needed / 1e9, total=total / 1e9)
            )

    def make_cutter(self, window_share: float) -> Callable[[], Any]:
        """window_share (float): see `Cutter`. RETURNS (Callable[[], Any]): makes it."""
        return cutter_maker(
            self.nlp["lang"],
            self.nlp.get("tokenizer") or {},
            max_tokens=self.corpus.max_tokens,
            window_share=window_share,
            cut=self.corpus.cut,
            seed=self.training.seed,
        )

    def open_corpus(self, output: Path, *, spool: bool = True) -> Corpus:
        """output (Path): where the standard input is saved. spool (bool): whether to save
        it; if not, it is saved already. RETURNS (Corpus): the text to train on. RAISES
        (ValueError): EL080 to EL085, EL101 and EL155 to EL157 for the text, EL089 for the
        tokenizer."""
        c, seed = self.corpus, self.training.seed
        sources, weights = open_sources(c.train, c.sources, output, seed, spool=spool)
        make_cutter = self.make_cutter(c.window_share)
        make_cutter()  # what is wrong with it is said here, not by a process that cuts
        return Corpus(sources, weights, make_cutter, n_workers=c.n_workers)

    def read_dev(self) -> List[List[str]]:
        """RETURNS (List[List[str]]): the held-out sequences to measure on; none without
        held-out text. RAISES (ValueError): EL080, EL081 and EL088."""
        if not self.corpus.dev:
            return []
        sequences = list(read_sequences(self.corpus.dev, self.make_cutter(0.0)))
        if not sequences:
            raise ValueError(Errors.EL094.format(path=self.corpus.dev))
        limit, in_order = self.training.eval_sequences, self.training.state_steps > 0
        return sample(sequences, limit, in_order=in_order)

    def read_vectors(self) -> Optional[StaticVectors]:
        """RETURNS (Optional[StaticVectors]): the table of `[bilm] input = "vectors"`; None
        for other inputs. RAISES (ValueError): EL087 if there is none."""
        if self.bilm.get("input") != "vectors":
            return None
        path = self.paths.get("vectors")
        if not path:
            raise ValueError(Errors.EL087.format(path=path, problem="set --paths.vectors"))
        return read_static_vectors(Path(path))

    def find_init(self) -> Optional[CheckpointFiles]:
        """RETURNS (Optional[CheckpointFiles]): the weights to start from; None if the run
        starts from random ones. RAISES (ValueError): EL030 to EL038 if they are not there or
        cannot be read."""
        if not self.paths.get("init"):
            return None
        files = CheckpointFiles.of(self.paths["init"], self.paths.get("init_weights"))
        find_reader(files).read_config(files)
        return files

    def make_shape(
        self, vocabulary: Vocabulary, vectors: Optional[StaticVectors], **sizes: int
    ) -> BiLMConfig:
        """vocabulary (Vocabulary): the words to predict. vectors (Optional[StaticVectors]):
        the given ones. sizes (int): sizes of a table that is not there yet. RETURNS
        (BiLMConfig): the shape, sizes of tables filled in. RAISES (ValueError): EL010,
        EL090 and EL091 for an impossible one."""
        block = dict(self.bilm)
        if block.get("input") == "words":
            block["n_words"] = len(vocabulary) - len(SPECIAL_WORDS)
        if block.get("input") == "vectors":
            block.update(sizes)
        if vectors is not None:
            block["n_words"], block["vector_width"] = vectors.vectors.shape
        try:
            return make_settings(BiLMConfig, block, "bilm")
        except TypeError as err:
            raise invalid(
                "bilm", "filters", block.get("filters"), "[[width, number], ...]"
            ) from err

    def make_model(
        self, shape: BiLMConfig, vocabulary: Vocabulary, vectors: Optional[StaticVectors]
    ) -> LanguageModel:
        """shape (BiLMConfig): from `make_shape`. vocabulary (Vocabulary): the words to
        predict. vectors (Optional[StaticVectors]): the given ones. RETURNS (LanguageModel):
        with random weights, always the same ones. RAISES (ValueError): EL160 as
        `require_memory`."""
        self.require_memory(shape, len(vocabulary))
        torch.manual_seed(self.training.seed)
        bilm = BiLM(shape)
        if vectors is not None:
            bilm.word_table.fill(vectors.words, torch.from_numpy(vectors.vectors))
        elif shape.input == "words":
            bilm.word_table.fill(vocabulary.words[len(SPECIAL_WORDS) :])
        kind, arguments = split_softmax(self.training.softmax)
        softmax = make_softmax(kind, shape.direction_width, len(vocabulary), **arguments)
        training = self.training
        context = TeacherContext(shape, vocabulary, training.batch_tokens, training.state_steps)
        teachers = make_teachers(training.teachers, context)
        return LanguageModel(bilm, softmax, training.dropout, teachers)

    def count_steps(self, n_targets: int) -> int:
        """n_targets (int): tokens and ends of sequences of the text; not looked at if
        `max_steps` is given. RETURNS (int): length of the whole run."""
        t = self.training
        return t.max_steps or max(1, ceil(t.max_epochs * n_targets / t.batch_tokens))

    def warn_of_length(self, n_targets: int) -> None:
        """n_targets (int): of the text, or of a part that is not less than a step. Warns with
        WL028 of a run that ends while its learning rate still rises, and with WL029 of a
        text that is less than a step."""
        t, total_steps = self.training, self.count_steps(n_targets)
        if total_steps <= t.warmup_steps:
            share = learn_rate_factor(
                total_steps - 1,
                schedule=t.schedule,
                warmup_steps=t.warmup_steps,
                total_steps=total_steps,
                decay_share=t.decay_share,
            )
            logger.warning(
                Warnings.WL028.format(
                    warmup_steps=t.warmup_steps, total_steps=total_steps, share=share
                )
            )
        if n_targets < t.batch_tokens:
            logger.warning(Warnings.WL029.format(n_targets=n_targets, batch_tokens=t.batch_tokens))

    def describe_text(self, corpus: Corpus) -> Dict[str, Any]:
        """corpus (Corpus): the text. RETURNS (Dict[str, Any]): all that its words and
        their numbers depend on, in JSON's types. Where the files lie does not matter."""
        about = asdict(self.corpus)
        for key in ("train", "dev", "n_workers"):
            del about[key]
        about["sources"] = {n: s["weight"] for n, s in self.corpus.sources.items()}
        about["nlp"] = dict(self.nlp)
        about["seed"] = self.training.seed
        about["files"] = [
            [file.name, file.stat().st_size]
            for source in corpus.sources.values()
            for file in source.files
        ]
        return json.loads(json.dumps(about))

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
        }
        return json.loads(json.dumps(identity))


def _check_paths(paths: Dict[str, Any]) -> None:
    for key, path in paths.items():
        if path is not None and not isinstance(path, str):
            raise invalid("paths", key, path, "a path, or null for none; ./2024 for a number")
    if paths.get("init_weights") and not paths.get("init"):
        expected = "none without paths.init, the options.json that belongs to it"
        raise invalid("paths", "init_weights", paths["init_weights"], expected)


def _check_language(nlp: Dict[str, Any]) -> None:
    check_keys(nlp, ("lang", "tokenizer"), "nlp")
    require_language(nlp.get("lang", ""))
    tokenizer = nlp.get("tokenizer")
    if tokenizer is not None and not isinstance(tokenizer, dict):
        raise invalid("nlp", "tokenizer", tokenizer, "a block [nlp.tokenizer]")
