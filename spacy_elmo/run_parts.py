"""The parts of a pretraining run that its config describes: text, shape, model."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import srsly
import torch
from torch import nn

from .bilm.config import BiLMConfig
from .bilm.model import BiLM
from .checkpoints.files import CheckpointFiles
from .checkpoints.reader import find_reader
from .corpora.corpus import Corpus, cutter_maker, open_sources, read_sequences
from .corpora.static_vectors import StaticVectors, read_static_vectors
from .errors import Errors
from .evaluation import sample
from .pretraining.objective import LanguageModel
from .pretraining.optimizers import make_optimizer, parse_settings
from .pretraining.settings import (
    CorpusSettings,
    TrainingSettings,
    check_keys,
    invalid,
    make_settings,
)
from .pretraining.softmax import make_softmax, split_softmax
from .pretraining.teachers import TeacherContext, describe_teachers, make_teachers
from .pretraining.vocabulary import SPECIAL_WORDS, Vocabulary

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
        value, EL180 to EL182 for a teacher."""
        check_keys(config["nlp"], ("lang", "tokenizer"), "nlp")
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
        # What is wrong with these is known only when they are made: now, not after hours
        # of counting.
        kind, arguments = split_softmax(checked.training.softmax)
        make_softmax(kind, _CHECKED_WIDTH, 1_000_000, **arguments)
        make_optimizer(nn.Linear(1, 1), *parse_settings(checked.training.optimizer))
        teachers = describe_teachers(training.teachers, shape.depth, training.state_steps)
        return replace(checked, teachers=teachers)

    def require_device(self, device: str) -> None:
        """device (str): "cpu" or "cuda". RAISES (ValueError): EL091 if it is not there, or
        does not have the precision."""
        if device not in ("cpu", "cuda") or (device == "cuda" and not torch.cuda.is_available()):
            raise invalid("training", "device", device, "cpu, or cuda where torch finds a GPU")
        if device == "cpu" and self.training.precision == "fp16":
            raise invalid("training", "precision", "fp16", "fp32 or bf16 on a CPU")

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
        (ValueError): EL080 to EL085."""
        c, seed = self.corpus, self.training.seed
        sources, weights = open_sources(c.train, c.sources, output, seed, spool=spool)
        cutter = self.make_cutter(c.window_share)
        return Corpus(sources, weights, cutter, n_workers=c.n_workers)

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
        with random weights, always the same ones."""
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
        return srsly.json_loads(srsly.json_dumps(about))

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
        return srsly.json_loads(srsly.json_dumps(identity))
